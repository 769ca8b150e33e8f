Feature: lists as values of properties

  Scenario: a list is one value, beside others too
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(id,"1").property(list,"k",["x","y"]).property(list,"k","z").addV("a").property(id,"2").property("k",["x"])
      """
    And the traversal of
      """
      g.V().values("k")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[x,y] |
      | z |
      | l[x] |

  Scenario: values of different types are no value of a property
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(id,"1")
      """
    And the traversal of
      """
      g.V().property("k",["x",1])
      """
    When iterated to list
    Then the traversal will raise an error
