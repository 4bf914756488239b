package difftest

// Operation is a request, or a restart or compaction of the server. Its path, query and body may have references. They are
// resolved from the same server's earlier responses: ${ns} and ${p} (the namespace and the prefix of cluster-scoped names),
// ${rv:KEY}, ${oldrv:KEY} and ${uid:KEY} (last and first resourceVersion, and UID, of the object at path KEY), ${listrv:ID} and
// ${continue:ID} (of operation ID).
type Operation struct {
	ID                       int
	Class, Verb, Kind, Fault string
	// Writer is the client's name and default field manager; "" means difftest.
	Writer       string
	Method, Path string
	Query        string
	ContentType  string
	Accept       string
	Body         string
	// Base makes the body the last seen object at the path Base, merged with Body, a JSON merge patch.
	Base string
	// OwnView takes Base and resourceVersions from the last state seen by Writer, which may be stale.
	OwnView bool
	// Current is a collection. The server's cache must be up to date with it before the operation is sent.
	Current string
	// LastOperation is the ID of the last operation during a watch. After it, a sentinel event ends the watch: Sentinel is created
	// at SentinelPath or, if SentinelPatch is set, the object there is changed by this merge patch.
	LastOperation int
	SentinelPath  string
	Sentinel      string
	SentinelPatch string
}

// The methods of operations other than requests.
const (
	methodRestart = "RESTART"
	methodCompact = "COMPACT"
)

// The classes of faults in requests.
const (
	faultNone     = "none"
	faultBody     = "body"     // malformed, wrong types, invalid or unknown fields
	faultMetadata = "metadata" // changed, ignored or rejected by the server
	faultOptions  = "options"  // parameters, selectors, media types
	faultState    = "state"    // absent, present or stale objects, failed preconditions, expired versions
)

// Response is the response of a server before normalisation.
type Response struct {
	Status      int
	ContentType string
	Warnings    []string
	Body        string
	Events      []string // of a watch
}

// Scenario has operations on the kinds of definitions.
type Scenario struct {
	// Definitions are names of CustomResourceDefinitions of the corpus or of this package.
	Definitions []string
	Operations  []Operation
}

// transcript is a run of operations on a server.
type transcript struct {
	namespace, prefix string
	began             int64 // the resourceVersion before the first operation
	responses         []Response
}
