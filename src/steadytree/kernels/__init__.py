"""Compiled loops: arrays in, arrays out. Imports numpy and numba, nothing else of steadytree."""

from steadytree.kernels.bins import encode_bins, occupied_bins, recode
from steadytree.kernels.choose import choose_rules, pick_rule
from steadytree.kernels.columns import summarise_columns
from steadytree.kernels.counts import (
    count_classes,
    left_counts,
    move_rows,
    rule_goes_left,
    weigh_classes,
)
from steadytree.kernels.levels import split_level
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
from steadytree.kernels.scores import score_rules, split_score
from steadytree.kernels.shape import is_tree, node_depths, nodes_below, preorder_nodes, uniform_nodes
from steadytree.kernels.walk import find_leaves

__all__ = [
    "RuleTable",
    "choose_rules",
    "count_classes",
    "encode_bins",
    "find_leaves",
    "hash_feature",
    "hash_node",
    "is_tree",
    "largest_uniform",
    "left_counts",
    "list_rules",
    "match_paths",
    "move_rows",
    "node_depths",
    "nodes_below",
    "occupied_bins",
    "path_distance_matrix",
    "path_vectors",
    "path_weights",
    "pick_rule",
    "place_features",
    "preorder_nodes",
    "recode",
    "rule_goes_left",
    "score_rules",
    "split_level",
    "split_score",
    "summarise_columns",
    "uniform_at",
    "uniform_nodes",
    "weigh_classes",
]
