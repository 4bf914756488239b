package difftest

// Operation is one request, or a restart or compaction of the server. Its path, query and body may have references that are
// resolved from what the same server has answered: ${ns} and ${p} (the namespace and the prefix of cluster-scoped names),
// ${rv:KEY}, ${oldrv:KEY} and ${uid:KEY} (last and first resourceVersion and UID seen of the object at the path KEY),
// ${listrv:ID} and ${continue:ID} (of the operation with that ID).
type Operation struct {
	ID                       int
	Class, Verb, Kind, Fault string
	// Writer is the client's name, which is the default field manager; "" means difftest.
	Writer       string
	Method, Path string
	Query        string
	ContentType  string
	Accept       string
	Body         string
	// Base makes the body the last seen object at that path, changed by Body, a JSON merge patch.
	Base string
	// OwnView takes Base and resourceVersions from what this Writer has seen last, which others may have changed since.
	OwnView bool
	// Current is a collection whose changes the server's cache must have before the operation is sent.
	Current string
	// LastOperation keeps the response of a watch open up to the operation with that ID. Then an event that the watch must show is made by
	// creating Sentinel at SentinelPath, or by a merge patch to the object there if SentinelPatch is set.
	LastOperation int
	SentinelPath  string
	Sentinel      string
	SentinelPatch string
}

// The methods of operations that are no requests.
const (
	methodRestart = "RESTART"
	methodCompact = "COMPACT"
)

// The classes of what is wrong with a request.
const (
	faultNone     = "none"
	faultBody     = "body"     // no JSON, wrong types, invalid or unknown fields
	faultMetadata = "metadata" // metadata that the server rejects, changes or ignores
	faultOptions  = "options"  // parameters, selectors, media types
	faultState    = "state"    // absent, present or stale objects, failed preconditions, expired versions
)

// Answer is the response of a server, before it is normalised.
type Answer struct {
	Status      int
	ContentType string
	Warnings    []string
	Body        string
	Events      []string // of a watch
}

// Scenario is operations on the kinds of definitions.
type Scenario struct {
	// Definitions are the names of CustomResourceDefinitions of the corpus or of this package.
	Definitions []string
	Operations  []Operation
}

// transcript is one run of operations on one server.
type transcript struct {
	namespace, prefix string
	began             int64 // the resourceVersion before the first operation
	answers           []Answer
}
