Feature: algorithms on the whole graph

  Scenario: ranks are properties of the vertices
    Given the modern graph
    And the traversal of
      """
      g.V().pageRank().with(PageRank.propertyName, "rank").project("name", "rank").by("name").by(values("rank").math("floor(_ * 1000)"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"name": "marko", "rank": "d[113.0].d"}] |
      | m[{"name": "vadas", "rank": "d[145.0].d"}] |
      | m[{"name": "lop", "rank": "d[304.0].d"}] |
      | m[{"name": "josh", "rank": "d[145.0].d"}] |
      | m[{"name": "ripple", "rank": "d[175.0].d"}] |
      | m[{"name": "peter", "rank": "d[113.0].d"}] |

  Scenario: ranks of another damping, of edges that pass a test
    Given the modern graph
    And the traversal of
      """
      g.V().pageRank().with(PageRank.edges, outE().has("weight", gte(0.5))).with("~tinkerpop.pageRank.propertyName", "rank").order().by("rank", desc).by("name").values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | ripple |
      | josh |
      | vadas |
      | lop |
      | marko |
      | peter |

  Scenario: the edges of each vertex are limited by themselves
    Given the modern graph
    And the traversal of
      """
      g.V().connectedComponent().with(ConnectedComponent.edges, outE("created").order().by("weight", desc).limit(1)).with(ConnectedComponent.propertyName, "part").group().by("part").by(values("name").order().fold()).unfold().order().by(select(keys)).select(values)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | l[lop,marko] |
      | l[vadas] |
      | l[josh,ripple] |
      | l[peter] |

  Scenario: ranks begin with the number of traversers
    Given the modern graph
    And the traversal of
      """
      g.V().out("created").pageRank().with(PageRank.times, 0).with(PageRank.propertyName, "rank").V().values("rank")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0.0].d |
      | d[0.0].d |
      | d[3.0].d |
      | d[0.0].d |
      | d[1.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[3.0].d |
      | d[0.0].d |
      | d[1.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[3.0].d |
      | d[0.0].d |
      | d[1.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[0.0].d |
      | d[3.0].d |
      | d[0.0].d |
      | d[1.0].d |
      | d[0.0].d |

  Scenario: a later scan tests a computed property
    Given the modern graph
    And the traversal of
      """
      g.V().limit(1).pageRank().with(PageRank.times, 0).with(PageRank.propertyName, "rank").V().has("rank", gt(0.5)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: a computed property takes the place of a stored one
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", 29).as("a").connectedComponent().with(ConnectedComponent.propertyName, "age").select("a").valueMap("name", "age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"name": ["marko"], "age": ["1"]}] |

  Scenario: what was read before keeps the stored property
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", 29).values("age").as("before").V().has("name", "josh").connectedComponent().with(ConnectedComponent.propertyName, "age").values("age").as("after").select("before", "after")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"before": "d[29].i", "after": "1"}] |

  Scenario: a vertex has its computed properties beside the stored ones
    Given the modern graph
    And the traversal of
      """
      g.V("5").peerPressure().with(PeerPressure.propertyName, "cluster").elementMap().select("name", "cluster")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"name": "ripple", "cluster": "1"}] |

  Scenario: nothing is stored
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property("name", "x").as("x").addV("a").property("name", "y").addE("e").from("x")
      """
    And the traversal of
      """
      g.V().pageRank().with(PageRank.propertyName, "rank").has("rank").count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |
    And the graph should return 0 for count of "g.V().has(\"rank\")"

  Scenario: paths by the distances of a traversal
    Given the modern graph
    And the traversal of
      """
      g.V("1").shortestPath().with(ShortestPath.target, has("name", "josh")).with(ShortestPath.distance, values("weight").math("1 / _"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[v[marko],v[josh]] |

  Scenario: paths along edges that pass a test
    Given the modern graph
    And the traversal of
      """
      g.V("2").shortestPath().with(ShortestPath.target, has("name", "ripple")).with(ShortestPath.edges, bothE().has("weight", gt(0.4)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[v[vadas],v[marko],v[josh],v[ripple]] |

  Scenario: edges without length do not lead in circles
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(id, "a").as("a").addV("a").property(id, "b").as("b").addV("a").property(id, "c").as("c").
        addE("e").from("a").to("b").property("w", 0).addE("e").from("b").to("a").property("w", 0).
        addE("e").from("b").to("c").property("w", 0).addE("e").from("a").to("c").property("w", 0)
      """
    And the traversal of
      """
      g.V("a").shortestPath().with(ShortestPath.target, hasId("c")).with(ShortestPath.edges, outE()).with(ShortestPath.distance, "w")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[v[a],v[b],v[c]] |
      | p[v[a],v[c]] |

  Scenario: a distance must be a number that is not negative
    Given the modern graph
    And the traversal of
      """
      g.V("1").shortestPath().with(ShortestPath.distance, constant(-1)).count()
      """
    When iterated to list
    Then the traversal will raise an error
