// TinkerPop's Go driver against the service. Arguments: the address, and the password or an empty text.
package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"

	gremlin "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

func ensure(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func run(traversal *gremlin.GraphTraversal) {
	if err := <-traversal.Iterate(); err != nil {
		panic(err)
	}
}

func count(traversal *gremlin.GraphTraversal) int64 {
	return must(must(traversal.Count().Next()).GetInt64())
}

func connect(address, password string) (*gremlin.DriverRemoteConnection, error) {
	return gremlin.NewDriverRemoteConnection("ws://"+address+"/gremlin",
		func(settings *gremlin.DriverRemoteConnectionSettings) {
			settings.TraversalSource = "g"
			settings.TlsConfig = &tls.Config{}
			settings.LogVerbosity = gremlin.Off
			if password != "" {
				settings.AuthInfo = gremlin.BasicAuthInfo("any name", password)
			}
		})
}

func traversals(g *gremlin.GraphTraversalSource) {
	ada := must(must(g.AddV("goPerson").Property(gremlin.T.Id, "go-ada").Property("name", "Ada").Next()).GetVertex())
	ensure(ada.Id == "go-ada" && ada.Label == "goPerson", ada)
	run(g.AddV("goPerson").Property(gremlin.T.Id, "go-bob").Property("age", 36))
	run(g.V("go-ada").AddE("goKnows").To(gremlin.T__.V("go-bob")).Property("since", 1842))
	names := must(g.V("go-bob").In("goKnows").Values("name").ToList())
	ensure(len(names) == 1 && names[0].GetString() == "Ada", names)
	ensure(count(g.V().HasLabel("goPerson").Has("age", gremlin.P.Gt(30))) == 1)
	ensure(count(g.V().HasLabel("goPerson").Has("name", gremlin.P.Within("Ada", "nobody"))) == 1)
	path := must(must(g.V("go-ada").OutE().InV().Path().Next()).GetPath())
	ensure(len(path.Objects) == 3, path)
	groups := must(g.V().HasLabel("goPerson").Group().By(gremlin.T.Label).By(gremlin.T__.Count()).Next())
	ensure(groups.GetInterface().(map[interface{}]interface{})["goPerson"] == int64(2), groups)
	_, err := g.V().Id().PageRank().ToList()
	ensure(err != nil && strings.Contains(err.Error(), "UnsupportedOperationException"), err)
}

func transactions(g *gremlin.GraphTraversalSource) {
	for _, commits := range []bool{true, false} {
		transaction := g.Tx()
		inside := must(transaction.Begin())
		run(inside.AddV("goInside"))
		ensure(count(inside.V().HasLabel("goInside")) > 0)
		if commits {
			ensure(transaction.Commit() == nil)
		} else {
			ensure(transaction.Rollback() == nil)
		}
		ensure(count(g.V().HasLabel("goInside")) == 1)
	}
}

func main() {
	address, password := os.Args[1], os.Args[2]
	connection := must(connect(address, password))
	g := gremlin.Traversal_().WithRemote(connection)
	traversals(g)
	transactions(g)
	var all sync.WaitGroup
	for at := range 64 {
		all.Add(1)
		go func() {
			defer all.Done()
			got := must(must(g.Inject(at).Next()).GetInt())
			ensure(got == at, got)
		}()
	}
	all.Wait()
	answer := must(connection.Submit("g.V('go-ada').count()"))
	result, _ := must2(answer.One())
	ensure(must(result.GetInt64()) == 1, result)
	connection.Close()
}

func must2[T any](value T, there bool, err error) (T, bool) {
	if err != nil {
		panic(err)
	}
	return value, there
}
