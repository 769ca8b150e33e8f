Feature: trees and subgraphs

  Scenario: the tree of all paths
    Given the modern graph
    And the traversal of
      """
      g.V("1").out().out().tree().by("name").select("marko").select("josh").select(keys).unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | ripple |
      | lop |

  Scenario: a tree of objects
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("knows").tree().select(keys).unfold().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |

  Scenario: a tree is a map
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("knows").tree().by("name").unfold().select(values).count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: a tree for each traverser
    Given the modern graph
    And the traversal of
      """
      g.V("1", "4").local(out("created").tree().by("name").unfold().select(values).count(local))
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1].l |
      | d[2].l |

  Scenario: a tree as a side effect
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("created").tree("t").by("name").in("created").tree("t").by("name").cap("t").select("marko").select("lop").select(keys).unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | josh |
      | peter |

  Scenario: the tree of nothing
    Given the modern graph
    And the traversal of
      """
      g.V("77").out().tree().select(keys).count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].l |

  Scenario: a subgraph of the edges of several steps
    Given the modern graph
    And the traversal of
      """
      g.V("1").outE("knows").subgraph("s").outV().outE("created").subgraph("s").cap("s").asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | tinkergraph[vertices:4 edges:3] |

  Scenario: a subgraph of what is no edge
    Given the modern graph
    And the traversal of
      """
      g.V().subgraph("s").cap("s")
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "subgraph()"

  Scenario: a tree leaves out objects without a value
    Given the modern graph
    And the traversal of
      """
      g.V().out().tree().by("age")
      """
    When iterated next
    Then the result should be a tree with a structure of
      """
      |--d[32].i
      |--d[35].i
      |--d[29].i
         |--d[32].i
         |--d[27].i
      """

  Scenario: types of trees and graphs
    Given the modern graph
    And the traversal of
      """
      g.V().out().tree().union(is(typeOf(GType.TREE)).constant("tree"), is(typeOf(GType.MAP)).constant("map"), is(typeOf(GType.GRAPH)).constant("graph"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | tree |
      | map |

  Scenario: the edges of a subgraph that a step reads
    Given the modern graph
    And the traversal of
      """
      g.E().has("weight", 0.4).subgraph("a").select("a")
      """
    When iterated next
    Then the result should be a subgraph with the following
      | edges |
      | e[marko-created->lop] |
      | e[josh-created->lop] |
