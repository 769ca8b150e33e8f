Feature: steps that walk

  Scenario: out with a label
    Given the modern graph
    And using the parameter vid1 defined as "v[marko].id"
    And the traversal of
      """
      g.V(vid1).out("knows")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[vadas] |
      | v[josh] |

  Scenario: both counts a loop twice
    Given the sink graph
    And the traversal of
      """
      g.V().hasLabel("loops").both().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | loop |
      | loop |

  Scenario: an edge step and its other end
    Given the modern graph
    And using the parameter vid1 defined as "v[josh].id"
    And the traversal of
      """
      g.V(vid1).bothE().otherV().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | ripple |
      | lop |
      | marko |

  Scenario: E by id
    Given the modern graph
    And using the parameter eid1 defined as "e[josh-created->lop].id"
    And the traversal of
      """
      g.E(eid1).outV()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[josh] |

  Scenario: several ids in a list
    Given the modern graph
    And using the parameter ids defined as "l[v[marko].id,v[lop].id]"
    And the traversal of
      """
      g.V(ids).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | lop |

  Scenario: an id that nobody has
    Given the modern graph
    And the traversal of
      """
      g.V("nobody").out()
      """
    When iterated to list
    Then the result should be empty

  Scenario: V in the middle
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").V().hasLabel("software").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |

  Scenario: path by name
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").out("knows").out("created").path().by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[marko,josh,ripple] |
      | p[marko,josh,lop] |

  Scenario: simplePath
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").out("created").in("created").simplePath().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |
      | peter |

  Scenario: repeat until, named and counted
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(out()).until(loops().is(2)).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | ripple |
      | lop |

  Scenario: repeat with emit before
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").emit().repeat(out()).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | vadas |
      | josh |
      | lop |
      | ripple |
      | lop |

  Scenario: a limit in a repeat counts each round
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(both().limit(1)).times(3).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: a limit in a repeat counts the rows of all traversers together
    Given the modern graph
    And the traversal of
      """
      g.V().repeat(both().limit(2)).times(3).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: a limit in a repeat that emits
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(both().limit(1)).emit().times(3).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: a limit in a repeat with a condition
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(both().limit(1)).until(loops().is(4)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: a limit in a repeat within a repeat
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(repeat(both().limit(1)).times(2)).times(2).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: a skip in a repeat skips in each round
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").repeat(out().order().by("name",desc).skip(1)).times(2).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |

  Scenario: times of zero rounds
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").times(0).repeat(out()).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |

  Scenario: a part of a path
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").out("created").as("b").in("created").as("c").path().from("b").to("c").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[lop,marko] |
      | p[lop,josh] |
      | p[lop,peter] |

  Scenario: a simple part of a path
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").out("created").as("b").in("created").as("c").simplePath().by(label).from("b").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | josh |
      | peter |

  Scenario: values of a path in turn
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("created").in("created").path().by("name").by(out().count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[marko,d[0].l,marko] |
      | p[marko,d[0].l,josh] |
      | p[marko,d[0].l,peter] |

  Scenario: a part of a path to a label that it does not have
    Given the modern graph
    And the traversal of
      """
      g.V("1").out().path().from("z")
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "a label that the path does not have"
