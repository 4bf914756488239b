package wire_test

import "strings"

// meantDifference is an intended difference, "ASPECT: ours | theirs" as differences writes it, and its reason.
type meantDifference struct{ difference, reason string }

const (
	noOptions      = "Without options there is nothing to say: the server's defaults are the same without a body."
	ownKind        = "An object without a kind gets the resource's: what a server stores and logs is then clear from the request alone."
	byPages        = "The iterator requests pages, so that neither side ever holds the whole list; so does client-go's pager."
	noProtobuf     = "anykind reads JSON unless transport.Options.Protobuf is set. The parameters' order says nothing to a server; it is the one that kubectl uses for tables."
	deleteResponse = "The response to a delete is returned, so metadata alone is requested; client-go's metadata client drops the response."
	noBeta         = "Tables of v1beta1 are of servers before 1.15."
	byPath         = "The path names the service account of the token, and the server takes it from there."
	oneTimeout     = "client-go's metadata client sends the same time-out twice; a server reads timeoutSeconds for a watch."
)

const (
	partial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	cgPartial   = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	cgAny       = "application/vnd.kubernetes.protobuf,application/json"
	table       = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	tokenSpec   = `"spec":{"audiences":["api"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"web-0","uid":"u-7"},"expirationSeconds":600}`
	watchQuery  = "allowWatchBookmarks=true&fieldSelector=metadata.name%3Dweb&labelSelector=app%3Dweb%2Ctier%21%3Ddb&resourceVersion=5&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&shardSelector=a+b"
)

var (
	noDeleteOptions = []meantDifference{
		{"content-type:  | application/json", noOptions},
		{`body: null | {"apiVersion":"v1","kind":"DeleteOptions"}`, noOptions},
	}
	partialAccept = meantDifference{"accept: " + partial + " | " + cgPartial, noProtobuf}
	tableAccept   = meantDifference{"accept: " + table + " | " + kubectlTables, noBeta}
)

// meantDifferences are the intended differences between requests, by the case's name.
var meantDifferences = map[string][]meantDifference{
	"delete":              noDeleteOptions,
	"delete a collection": noDeleteOptions,
	"create without kind": {
		{`body: {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}} | {"metadata":{"name":"web"}}`, ownKind},
	},
	"CreateToken": {
		{`body: {"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}} | ` +
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{"name":"web"},"spec":{}}`, byPath},
	},
	"CreateToken, with options": {
		{`body: {"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",` + tokenSpec + `} | ` +
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{"name":"web"},` + tokenSpec + `}`, byPath},
	},
	"list by iterator": {{"query: limit=500 | ", byPages}},
	"get metadata":     {partialAccept},
	"patch metadata":   {partialAccept},
	"list metadata": {
		{"accept: " + partialList + " | " + strings.ReplaceAll(cgPartial, "ObjectMetadata", "ObjectMetadataList"), noProtobuf},
	},
	"watch metadata": {
		partialAccept,
		{"query: " + watchQuery + "&timeoutSeconds=30&watch=true | " + watchQuery + "&timeout=30s&timeoutSeconds=30&watch=true", oneTimeout},
	},
	"delete, metadata":              {{"accept: " + partial + " | " + cgAny, deleteResponse}},
	"delete a collection, metadata": {{"accept: " + partialList + " | " + cgAny, deleteResponse}},
	"get a table":                   {tableAccept},
	"list a table":                  {tableAccept},
	"watch a table":                 {tableAccept},
}
