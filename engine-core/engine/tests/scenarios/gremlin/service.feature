Feature: services

  Scenario: call lists the services of TinkerGraph
    Given the modern graph
    And the traversal of
      """
      g.call()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | tinker.search |
      | tinker.degree.centrality |

  Scenario: tinker.search finds properties of vertices and edges by a regular expression
    Given the modern graph
    And the traversal of
      """
      g.call("tinker.search", ["search": "^[jr]|^0.4"]).value()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |
      | ripple |
      | java |
      | java |
      | d[0.4].d |
      | d[0.4].d |

  Scenario: tinker.search takes an expression for the whole text, and a type
    Given the modern graph
    And the traversal of
      """
      g.call("tinker.search").with("regex", "lo.").with("type", "Vertex").path()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[vp[lop-name->lop]] |

  Scenario: tinker.degree.centrality counts in both directions
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", "josh").call("tinker.degree.centrality").with("direction", BOTH)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |
