Feature: patterns with variables

  Scenario: two walks from one variable
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.as("a").out("knows").as("b"), __.as("a").out("created").as("c")).select("b", "c").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"b":"vadas","c":"lop"}] |
      | m[{"b":"josh","c":"lop"}] |

  Scenario: a walk back to the first variable
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.as("a").out("created").as("b"), __.as("b").in("created").as("a")).select("a").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | josh |
      | josh |
      | peter |

  Scenario: a test waits for its variables
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.where("a", neq("c")), __.as("a").out("created").as("b"), __.as("b").in("created").as("c")).select("a", "c").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","c":"josh"}] |
      | m[{"a":"marko","c":"peter"}] |
      | m[{"a":"josh","c":"marko"}] |
      | m[{"a":"josh","c":"peter"}] |
      | m[{"a":"peter","c":"marko"}] |
      | m[{"a":"peter","c":"josh"}] |

  Scenario: a walk that reduces works for each traverser
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").match(__.as("a").out("created").count().as("n")).select("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |
      | d[0].l |
      | d[2].l |
      | d[1].l |

  Scenario: a negated pattern
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.as("a").out().as("b"), __.not(__.as("a").out("created").as("b"))).select("a", "b").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","b":"vadas"}] |
      | m[{"a":"marko","b":"josh"}] |

  Scenario: one of two patterns
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.as("a").hasLabel("person"), __.or(__.as("a").has("age", lt(28)), __.as("a").has("age", gt(34)))).select("a").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |
      | peter |

  Scenario: variables that were bound before
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").out("knows").as("b").match(__.as("b").out("created").as("c")).select("a", "c").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","c":"lop"}] |
      | m[{"a":"marko","c":"ripple"}] |

  Scenario: a pattern whose variable nothing binds
    Given the modern graph
    And the traversal of
      """
      g.V().match(__.as("a").out().as("b"), __.as("z").out().as("y"))
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "no pattern of match() binds the variables of this one"
