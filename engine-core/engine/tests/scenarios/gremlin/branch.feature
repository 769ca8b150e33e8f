Feature: steps that branch

  Scenario: union sums over all traversers
    Given the modern graph
    And the traversal of
      """
      g.V("1","4").union(outE().count(), inE().count())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[5].l |
      | d[1].l |

  Scenario: choose with options
    Given the modern graph
    And the traversal of
      """
      g.V().choose(label).option("person", values("age")).option("software", values("lang")).dedup()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |
      | d[32].i |
      | d[35].i |
      | java |

  Scenario: choose with a stateful branch
    Given the modern graph
    And the traversal of
      """
      g.V().choose(hasLabel("person"), values("age").max(), values("lang").dedup())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[35].i |
      | java |

  Scenario: coalesce takes the first that yields
    Given the modern graph
    And the traversal of
      """
      g.V("1","2").coalesce(out("created"), constant("none"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[lop] |
      | none |

  Scenario: optional
    Given the modern graph
    And the traversal of
      """
      g.V("2").optional(out())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | v[vadas] |

  Scenario: local limits each
    Given the modern graph
    And the traversal of
      """
      g.V().local(outE("created").limit(1)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[3].l |
