from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.learn.risk_score import RiskScoreClassifier

FOLDS = "folds are drawn over rows, so repeated rows are spread differently from weights"


def expected_failures(estimator):
    settled = "1se" != estimator.tau and "cv" not in (estimator.gamma, estimator.n_rounds)
    if settled or (estimator.loss == "logistic" and estimator.tau != "1se"):
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": FOLDS}


@parametrize_with_checks(
    [
        RiskScoreClassifier(),
        RiskScoreClassifier(tau=0.05, gamma=0.1, n_rounds=10),
        RiskScoreClassifier(loss="logistic", tau=0.02),
        RiskScoreClassifier.published(),
    ],
    expected_failed_checks=expected_failures,
)
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)
