package difftest

// Operation is one request. Its path, query and body may have references that are resolved from what the same server has
// answered: ${ns} and ${p} (the namespace and the prefix of cluster-scoped names), ${rv:KEY}, ${oldrv:KEY} and ${uid:KEY} (last
// and first resourceVersion and UID seen of the object at the path KEY), ${listrv:N} and ${continue:N} (of operation N).
type Operation struct {
	Class, Verb, Kind string
	Method, Path      string
	Query             string
	ContentType       string
	Accept            string
	Body              string
	// Base makes the body the last seen object at that path, changed by Body, a JSON merge patch.
	Base string
	// Watch keeps the response open for that many operations; Sentinel is then created at SentinelPath and awaited if the
	// watch's selectors match it.
	Watch                  int
	Shown                  bool
	Sentinel, SentinelPath string
}

// Answer is what a server answered, before it is normalised.
type Answer struct {
	Status      int
	ContentType string
	Warnings    []string
	Body        string
	Events      []string // of a watch
}

// transcript is one run of operations on one server.
type transcript struct {
	namespace, prefix string
	began             int64 // the resourceVersion before the first operation
	answers           []Answer
}
