import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.riskscore.risk_score import RiskScoreClassifier

VOTES = "class_weight is for log_loss; conditions take sample_weight"
FOLDS = "folds are drawn over rows, so repeated rows are spread differently from weights"
# some checks fit to labels drawn at random, where an empty card is right
pytestmark = pytest.mark.filterwarnings("ignore:no condition was kept")


@parametrize_with_checks([RiskScoreClassifier("majority", noise=0.05, gamma=0.1, n_rounds=10)])
def test_follows_the_sklearn_contract(estimator, check):
    if "class_weight" in check.func.__name__:
        pytest.skip(VOTES)
    check(estimator)


@parametrize_with_checks([RiskScoreClassifier(objective="logistic", noise=0.02)])
def test_logistic_follows_the_sklearn_contract(estimator, check):
    if "class_weight" in check.func.__name__:
        pytest.skip(VOTES)
    check(estimator)


@parametrize_with_checks([RiskScoreClassifier(), RiskScoreClassifier(noise=0.05)])
def test_bands_follow_the_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RiskScoreClassifier("majority"), RiskScoreClassifier.as_published()])
def test_follows_the_sklearn_contract_with_settings_chosen(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        pytest.skip(FOLDS)  # whether the same settings win all the same is luck
    if "class_weight" in check.func.__name__:
        pytest.skip(VOTES)
    check(estimator)
