"""Compiled loops: arrays in, arrays out. Imports numpy and numba, nothing else of steadytree."""

from steadytree.kernels import _cache as _cache  # before anything is compiled
from steadytree.kernels.bins import encode_bins, occupied_bins, recode
from steadytree.kernels.bit_rows import count_common, order_by_class, pack_answers
from steadytree.kernels.choose import choose_rules, draw_rule, pick_rule, reject_rule
from steadytree.kernels.columns import summarise_columns
from steadytree.kernels.counts import (
    child_counts,
    count_classes,
    move_rows,
    rule_goes_left,
    weigh_classes,
)
from steadytree.kernels.draw import GUMBEL, REJECTION, Draw
from steadytree.kernels.flat_tree import FlatTree, flatten
from steadytree.kernels.grow_rows import grow_rows, regrow_without
from steadytree.kernels.impurity import impurity_scores
from steadytree.kernels.leave_out import leave_out
from steadytree.kernels.levels import split_level
from steadytree.kernels.lookahead import best_hits, score_ahead
from steadytree.kernels.node_distance import node_distance
from steadytree.kernels.noise import hash_feature, hash_node, largest_uniform, uniform_at
from steadytree.kernels.path_distance import (
    match_paths,
    path_distance_matrix,
    path_vectors,
    path_weights,
    place_features,
)
from steadytree.kernels.rule_table import RuleTable
from steadytree.kernels.rules import list_rules
from steadytree.kernels.scores import COUNT, ENTROPY, GINI, score_rules, split_score
from steadytree.kernels.shape import (
    cut_back,
    is_tree,
    node_depths,
    preorder_nodes,
    uniform_nodes,
)
from steadytree.kernels.walk import find_leaves
from steadytree.kernels.whole_tree import PURE, RIGHT, root_terms

__all__ = [
    "COUNT",
    "ENTROPY",
    "GINI",
    "GUMBEL",
    "PURE",
    "REJECTION",
    "RIGHT",
    "Draw",
    "FlatTree",
    "RuleTable",
    "best_hits",
    "child_counts",
    "choose_rules",
    "count_classes",
    "count_common",
    "cut_back",
    "draw_rule",
    "encode_bins",
    "find_leaves",
    "flatten",
    "grow_rows",
    "hash_feature",
    "hash_node",
    "impurity_scores",
    "is_tree",
    "largest_uniform",
    "leave_out",
    "list_rules",
    "match_paths",
    "move_rows",
    "node_depths",
    "node_distance",
    "occupied_bins",
    "order_by_class",
    "pack_answers",
    "path_distance_matrix",
    "path_vectors",
    "path_weights",
    "pick_rule",
    "place_features",
    "preorder_nodes",
    "recode",
    "regrow_without",
    "reject_rule",
    "root_terms",
    "rule_goes_left",
    "score_ahead",
    "score_rules",
    "split_level",
    "split_score",
    "summarise_columns",
    "uniform_at",
    "uniform_nodes",
    "weigh_classes",
]
