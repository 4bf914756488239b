package bench_test

// meantDifference is what differs, "ASPECT: ours | theirs" as differences writes it, and why it is meant to.
type meantDifference struct{ difference, reason string }

const (
	noOptions = "Without options there is nothing to say: the server's defaults are the same without a body."
	ownKind   = "An object without a kind gets the resource's: a server that serves several kinds at a path, and a reader of an audit log, can tell."
	byPages   = "The iterator asks for pages, so that neither side ever holds the whole list; client-go's pager asks so, too."
)

// meantDifferences are the requests of which anykind means to send others than client-go, by the case's name.
var meantDifferences = map[string][]meantDifference{
	"delete": {
		{"content-type:  | application/json", noOptions},
		{`body: null | {"apiVersion":"v1","kind":"DeleteOptions"}`, noOptions},
	},
	"create without kind": {
		{`body: {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}} | {"metadata":{"name":"web"}}`, ownKind},
	},
	"list by iterator": {{"query: limit=500 | ", byPages}},
}
