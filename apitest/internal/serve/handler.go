// Package serve is the HTTP side of the server. It parses requests like the API server, authenticates, routes, reads from the
// store, and passes writes to package write.
package serve

import (
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/podstream"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// Config has the dependencies of a Handler. Registry, Store, Writer and Access are required.
type Config struct {
	Store    *store.Store
	Registry *kinds.Registry
	Writer   *write.Writer
	Access   *access.Access
	// Streams handles the streaming subresources of pods, nodes and services.
	Streams *podstream.Handler
	Now     func() time.Time
	// BookmarkInterval is the time between bookmarks of a watch with allowWatchBookmarks.
	BookmarkInterval time.Duration
	// ShardedListAndWatch selects the objects of a shard.
	ShardedListAndWatch bool
	// OnNotValidated replaces the warnings about what the server does not implement, if it is not nil.
	OnNotValidated func(record *Record, text string)
	// Observe is called after each request.
	Observe func(*Record)
	// Fault is called before each request is executed; nil means no faults.
	Fault func(*Record) *Fault
	// Settle is called after a write of a definition. It returns when the definition is served.
	Settle func()
}

// Handler serves the API of a server.
type Handler struct {
	Config
	mu    sync.Mutex
	idle  *sync.Cond // no request is running
	calls int        // running requests
}

// Wait waits for all running requests. A request may begin meanwhile, of a connection that the caller is closing.
func (h *Handler) Wait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.calls > 0 {
		h.idle.Wait()
	}
}

// count adds a number to the running requests.
func (h *Handler) count(change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls += change
	if h.calls == 0 {
		h.idle.Broadcast()
	}
}

// New returns a Handler. Watches end with their requests' contexts.
func New(config Config) *Handler {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.BookmarkInterval <= 0 {
		config.BookmarkInterval = time.Minute
	}
	h := &Handler{Config: config}
	h.idle = sync.NewCond(&h.mu)
	return h
}

// call is the state of a request in the handler.
type call struct {
	*Handler
	w        http.ResponseWriter
	req      *http.Request
	info     *RequestInfo
	user     *access.User
	resource *kinds.Resource
	record   *Record
	fault    *Fault

	encodesItems bool // the items of a list are json.RawMessage, which takes a fraction of the memory
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.count(1)
	defer h.count(-1)
	info := parseRequestInfo(req)
	record := newRecord(req, info, h.Now(), h.Store.Revision())
	recorder := &statusRecorder{ResponseWriter: w}
	defer func() {
		if h.Observe != nil {
			record.Code = recorder.code
			record.Duration = h.Now().Sub(record.Time)
			h.Observe(record)
		}
	}()
	c := &call{Handler: h, w: recorder, req: req, info: info, record: record}
	if h.Fault != nil {
		c.fault = h.Fault(record)
	}
	c.w.Header().Set("Audit-Id", newID())
	if c.fault.before(c) {
		return
	}
	if err := c.authorize(); err != nil {
		writeError(c.w, req, err)
		return
	}
	c.route()
}

func (c *call) authorize() error {
	user, err := c.Access.Authenticate(c.req)
	if err != nil {
		return err
	}
	c.user = user
	c.record.User = user.Name
	attributes := access.Attributes{Verb: c.info.Verb, Path: c.req.URL.Path}
	if c.info.IsResource {
		attributes = access.Attributes{
			Verb: c.info.Verb, Group: c.info.Group, Resource: c.info.Resource, Subresource: c.info.Subresource,
			Namespace: c.info.Namespace, Name: c.info.Name,
		}
	}
	return c.Access.Authorize(user, attributes)
}

// route dispatches a request to the registry or to its resource.
func (c *call) route() {
	switch {
	case !c.info.IsResource && c.Registry.Serves(c.req.URL.Path) && !c.isUnknownVersion():
		c.Registry.ServeHTTP(c.w, c.req)
	case !c.info.IsResource:
		c.notFound()
	default:
		c.resource = c.Registry.Lookup(c.info.Group, c.info.Version, c.info.Resource)
		if c.resource == nil || !c.scopeMatches() {
			c.notFound()
			return
		}
		if err := c.serveResource(); err != nil {
			writeError(c.w, c.req, err)
		}
	}
}

// notFound responds like the responsible part of the API server: a Status within a built-in group, otherwise text.
func (c *call) notFound() {
	parts := splitPath(c.req.URL.Path)
	if len(parts) > 0 && parts[0] == "api" || len(parts) > 1 && parts[0] == "apis" && c.isBuiltinGroup(parts[1]) {
		writeError(c.w, c.req, errNoResource())
		return
	}
	http.NotFound(c.w, c.req)
}

// isUnknownVersion reports whether the path has a version unknown in a built-in group.
func (c *call) isUnknownVersion() bool {
	parts := splitPath(c.req.URL.Path)
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return !c.servesVersion("", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		return c.isBuiltinGroup(parts[1]) && !c.servesVersion(parts[1], parts[2])
	}
	return false
}

func (c *call) servesVersion(group, version string) bool {
	return slices.ContainsFunc(c.Registry.Resources(), func(r *kinds.Resource) bool { return r.Group == group && r.Version == version })
}

func (c *call) isBuiltinGroup(group string) bool {
	return slices.ContainsFunc(c.Registry.Resources(), func(r *kinds.Resource) bool { return r.Group == group && r.Definition == nil })
}

// scopeMatches reports whether the path has a namespace exactly if the resource is namespaced. The namespace is optional in lists
// and watches, and in requests to a built-in collection with a method that is then rejected.
func (c *call) scopeMatches() bool {
	inNamespace := c.info.Namespace != "" && (c.info.namespaceIsPartOfScope || c.resource.Plural != "namespaces")
	if inNamespace || !c.resource.Namespaced {
		return inNamespace == c.resource.Namespaced
	}
	if c.info.Verb == "list" || c.info.Verb == "watch" {
		return true
	}
	return c.resource.Definition == nil && (c.info.Name == "" || c.info.Verb == "deletecollection")
}

func (c *call) serveResource() error {
	if c.resource.Definition != nil {
		c.warnOfDeprecation()
	} else if text := builtin.DeprecationWarning(c.resource.GroupResource()); text != "" && c.info.Subresource == "" {
		c.warn(text)
	}
	if c.info.Subresource != "" {
		return c.serveSubresource()
	}
	if c.resource.Namespaced && c.info.Namespace == "" && c.info.Verb != "list" && c.info.Verb != "watch" &&
		!access.IsReview(c.resource.Group, c.resource.Plural) {
		return errNoMethod()
	}
	if c.resource.Definition != nil && c.info.Name == "" && (c.info.Verb == "update" || c.info.Verb == "patch") {
		return apierrors.NewBadRequest("name must be provided")
	}
	if !c.allowsMethod() {
		return errNoMethod()
	}
	switch c.info.Verb {
	case "get":
		return c.get()
	case "list":
		return c.list()
	case "watch":
		return c.watch()
	case "create":
		return c.create()
	case "update", "patch", "delete":
		return c.write()
	case "deletecollection":
		return c.deleteCollection()
	}
	return errNoMethod()
}

// allowsMethod reports whether the method exists for the path. PUT of a collection and POST to an object do not exist.
func (c *call) allowsMethod() bool {
	isObject := c.hasNameInPath()
	if c.req.Method == http.MethodHead && c.resource.Definition == nil {
		return false
	}
	switch c.info.Verb {
	case "create":
		return (!isObject || c.resource.Definition != nil) && c.resource.HasVerb("create")
	case "update", "patch", "delete", "get":
		return isObject && c.resource.HasVerb(c.info.Verb)
	case "list":
		return c.resource.HasVerb("list")
	case "watch":
		return c.resource.HasVerb("watch")
	}
	return c.resource.HasVerb(c.info.Verb)
}

func (c *call) hasNameInPath() bool {
	switch c.info.Verb {
	case "list", "watch", "deletecollection":
		return false
	}
	return c.info.Name != ""
}

func (c *call) key() store.Key {
	key := store.Key{Group: c.resource.Group, Resource: c.resource.Plural, Namespace: c.info.Namespace, Name: c.info.Name}
	if !c.resource.Namespaced {
		key.Namespace = ""
	}
	return key
}

func (c *call) groupResource() schema.GroupResource { return c.resource.GroupResource() }

func (c *call) namespace() string { return c.key().Namespace }
