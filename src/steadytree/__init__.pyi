"""The public names of steadytree, each loaded from its module when it is first used."""

from .data.feature_space import FeatureSpace as FeatureSpace
from .data.schema import Schema as Schema
from .distance.tree_distance import collection_facts as collection_facts
from .distance.tree_distance import tree_distance as tree_distance
from .federated.coordinator import Coordinator as Coordinator
from .federated.holder import Holder as Holder
from .metrics.calibration import calibration as calibration
from .metrics.complexity import complexity as complexity
from .metrics.groups import by_group as by_group
from .metrics.measurement import Measurement as Measurement
from .models.files import load as load
from .models.files import save as save
from .models.scorecard import Scorecard as Scorecard
from .models.sklearn import as_tree as as_tree
from .models.sklearn import to_sklearn as to_sklearn
from .models.tree import Tree as Tree
from .privacy.evaluation import audit_privacy as audit_privacy
from .privacy.evaluation import private_accuracy as private_accuracy
from .privacy.ledger import Ledger as Ledger
from .privacy.private_tree import PrivateTreeClassifier as PrivateTreeClassifier
from .privacy.simulation import simulate as simulate
from .reporting.comparison import compare as compare
from .reporting.diff import diff as diff
from .reporting.explain import explain as explain
from .reporting.plot import plot as plot
from .reporting.report import report as report
from .riskscore.risk_score import RiskScoreClassifier as RiskScoreClassifier
from .robustness.certify import certify as certify
from .robustness.perturbation import Perturbation as Perturbation
from .robustness.robust_tree import RobustTreeClassifier as RobustTreeClassifier
from .robustness.separation import separation as separation
from .robustness.shift import shift_accuracy as shift_accuracy
from .stability.curve import distributional_sensitivity as distributional_sensitivity
from .stability.curve import stability_curve as stability_curve
from .stability.pareto_tree import ParetoTreeClassifier as ParetoTreeClassifier
from .stability.refits import refits as refits
from .stability.retrain import RetrainedTreeClassifier as RetrainedTreeClassifier
from .stability.sensitivity import average_sensitivity as average_sensitivity
from .stability.stable_tree import StableTreeClassifier as StableTreeClassifier
from .stability.steady_tree import SteadyTreeClassifier as SteadyTreeClassifier

__version__: str
__all__: list[str]
