"""Writes the graphs beside it, which networkx and scikit-network ship, and what networkx finds on them.

    pip install networkx scipy scikit-network && python make.py

karate      friends in a karate club, with the number of their common activities (Zachary 1977)
miserables  characters of Les Misérables, with the number of chapters that they share (Knuth 1993)
families    marriages between families of Florence (Breiger and Pattison 1986)
women       women of a southern town and the events that they came to (Davis, Gardner and Gardner 1941)
painters    links between the pages of painters in Wikipedia; directed (scikit-network)
"""

import networkx as nx
import sknetwork.data


def painters():
    return nx.from_scipy_sparse_array(sknetwork.data.painters(), create_using=nx.DiGraph, edge_attribute="one")


GRAPHS = {
    "karate": nx.karate_club_graph,
    "miserables": nx.les_miserables_graph,
    "families": nx.florentine_families_graph,
    "women": nx.davis_southern_women_graph,
    "painters": painters,
}

for name, make in GRAPHS.items():
    # Ids with gaps, so that a table in other numbers than those of the file is found out.
    graph = nx.convert_node_labels_to_integers(make(), first_label=1, ordering="default")
    graph = nx.relabel_nodes(graph, {v: 3 * v for v in graph})
    weighted = nx.is_weighted(graph)
    with open(f"{name}.{'wel' if weighted else 'el'}", "w") as file:
        for a, b, data in graph.edges(data=True):
            file.write(f"{a} {b} {data['weight']}\n" if weighted else f"{a} {b}\n")
    source = max(graph, key=lambda v: (sum(1 for _ in nx.all_neighbors(graph, v)), -v))
    ranks = nx.pagerank(graph, max_iter=10000, tol=1e-16)
    levels = nx.single_source_shortest_path_length(graph, source)
    distances = nx.single_source_dijkstra_path_length(graph, source)
    parts = nx.weakly_connected_components(graph) if graph.is_directed() else nx.connected_components(graph)
    component = {v: min(part) for part in parts for v in part}
    with open(f"{name}.csv", "w") as file:
        file.write("vertex,rank,level,distance,component\n")
        for v in sorted(graph):
            file.write(f"{v},{ranks[v]!r},{levels.get(v, -1)},{distances.get(v, 'inf')},{component[v]}\n")
    print(name, graph, "source", source, "weighted" if weighted else "")
