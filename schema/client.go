package schema

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// Options are the options of [New].
type Options struct {
	// Dir is a folder in which documents are kept, in a folder for each server. [discovery.DefaultCacheDir] is kubectl's. The
	// default is to keep documents in memory only.
	Dir string
}

// Client finds the schemas of kinds. It reads the list of an API server's documents once, and the document of a group
// version at the first call for its kinds. An unknown kind makes it read the list again, as [Client.Refresh] does. Documents on
// disk are found by their hash in the server's list: a warm cache costs the request for the list. A Client is safe for concurrent
// use.
type Client struct {
	*shared
	override map[schema.GroupVersionKind]*Schema // of definitions
}

// shared is the state of a client and its copies with definitions.
type shared struct {
	server *server // nil without a server
	disk   *folder // nil without a folder

	busy      chan struct{}            // held while the following fields are used
	hashes    index                    // nil before the first read
	documents map[string]*heldDocument // by path, such as apis/apps/v1
}

// index maps the paths of documents, such as apis/apps/v1, to their hashes.
type index map[string]string

type heldDocument struct {
	hash     string
	document *Document
}

// New returns a client of an API server. It sends no request.
func New(conn *transport.Conn, opts *Options) *Client {
	c := newClient()
	c.server = &server{conn: conn}
	if opts != nil && opts.Dir != "" {
		c.disk = newServerFolder(opts.Dir, conn.Server())
	}
	return c
}

// NewOffline returns a client of documents in a folder written by [Client.Save]. With an empty dir it knows no kinds; see
// [Client.WithDefinitions].
func NewOffline(dir string) (*Client, error) {
	c := newClient()
	if dir == "" {
		c.hashes = index{}
		return c, nil
	}
	c.disk = &folder{dir: dir}
	saved, err := c.disk.readIndex()
	if err != nil {
		return nil, fmt.Errorf("open schemas %s: %w", dir, err)
	}
	c.hashes = saved.Documents
	return c, nil
}

func newClient() *Client {
	return &Client{shared: &shared{busy: make(chan struct{}, 1), documents: map[string]*heldDocument{}}}
}

// Kind returns the schema of a kind's objects. For a kind that the server does not describe it returns a *meta.NoKindMatchError:
// a kind that is not served, or a kind of an aggregated API without OpenAPI v3.
func (c *Client) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*Schema, error) {
	if s := c.override[gvk]; s != nil {
		return s, nil
	}
	s, err := c.find(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kindText(gvk), err)
	}
	return s, nil
}

func (c *shared) find(ctx context.Context, gvk schema.GroupVersionKind) (*Schema, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	isNew := c.hashes == nil
	if isNew {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
	}
	s, err := c.kind(ctx, gvk)
	mayBeOutdated := s == nil && (err == nil || apierrors.IsNotFound(err)) // also of a group version that is no longer served
	if !mayBeOutdated || isNew || c.server == nil {
		return s, orNoMatch(s, err, gvk)
	}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	s, err = c.kind(ctx, gvk)
	return s, orNoMatch(s, err, gvk)
}

func orNoMatch(s *Schema, err error, gvk schema.GroupVersionKind) error {
	if s == nil && err == nil {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return err
}

// kind returns the schema of a kind in the known documents, or nil.
func (c *shared) kind(ctx context.Context, gvk schema.GroupVersionKind) (*Schema, error) {
	path := pathOf(gvk.GroupVersion())
	if _, found := c.hashes[path]; !found {
		return nil, nil
	}
	document, err := c.document(ctx, path)
	if err != nil {
		return nil, err
	}
	return document.Kind(gvk)
}

// document returns a document of the index from memory, the disk or the server.
func (c *shared) document(ctx context.Context, path string) (*Document, error) {
	hash := c.hashes[path]
	if held := c.documents[path]; held != nil && held.hash == hash {
		return held.document, nil
	}
	document, current, err := c.readDocument(ctx, path, hash)
	if err != nil {
		return nil, err
	}
	if current != hash {
		c.hashes[path] = current
		c.server.etag = "" // hashes are no longer those of the list
	}
	c.documents[path] = &heldDocument{hash: current, document: document}
	return document, nil
}

// readDocument also returns the document's hash. It differs from the given one if the document has changed since the index was read.
func (c *shared) readDocument(ctx context.Context, path, hash string) (document *Document, current string, err error) {
	if c.disk != nil && (hash != "" || c.server == nil) { // without a hash a document may be outdated
		document, err := c.disk.readDocument(path, hash)
		if err == nil || c.server == nil {
			return document, hash, err
		}
	}
	data, current, err := c.server.document(ctx, path, hash)
	if err != nil {
		return nil, "", err
	}
	if document, err = ParseDocument(data); err != nil {
		return nil, "", fmt.Errorf("GET %s: %w", openAPIPath+"/"+path, err)
	}
	if c.disk != nil {
		// A cache that cannot be written costs a request the next time.
		_ = c.disk.writeDocument(path, current, data)
	}
	return document, current, nil
}

// Refresh reads the list of the server's documents again, by a conditional request if the server has sent an ETag: kube-apiserver
// sends none for the list. Documents with a new hash are read at the next call for their kinds. Schemas returned before
// stay as they are. Offline it does nothing.
func (c *Client) Refresh(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return fmt.Errorf("refresh schemas: %w", err)
	}
	defer c.unlock()
	if err := c.refresh(ctx); err != nil {
		return fmt.Errorf("refresh schemas: %w", err)
	}
	return nil
}

func (c *shared) refresh(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	var known *savedIndex
	if c.server.etag != "" {
		known = &savedIndex{ETag: c.server.etag, Documents: c.hashes}
	} else if c.disk != nil {
		known, _ = c.disk.readIndex() // unreadable is as good as missing
	}
	current, err := c.server.index(ctx, known)
	if err != nil {
		return err
	}
	isKnown := known != nil && current.ETag == known.ETag && maps.Equal(current.Documents, known.Documents)
	if c.disk != nil && !isKnown {
		_ = c.disk.writeIndex(current)
	}
	c.server.etag = current.ETag
	c.hashes = current.Documents
	return nil
}

// Kinds returns the kinds of all documents and definitions, sorted by their text form. Without a warm cache it costs a request
// for each group version.
func (c *Client) Kinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for gvk := range c.override {
		kinds[gvk] = true
	}
	err := c.eachDocument(ctx, func(path string, document *Document) error {
		for gvk := range document.Kinds() {
			if pathOf(gvk.GroupVersion()) == path {
				kinds[gvk] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kinds of all schemas: %w", err)
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}), nil
}

// eachDocument passes the documents of all group versions, sorted by path.
func (c *shared) eachDocument(ctx context.Context, use func(path string, document *Document) error) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if c.hashes == nil {
		if err := c.refresh(ctx); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.hashes)) {
		document, err := c.document(ctx, path)
		if err != nil {
			return err
		}
		if err := use(path, document); err != nil {
			return err
		}
	}
	return nil
}

// Save writes the documents of all group versions to a folder for [NewOffline]. The folder is made if it is missing. Definitions
// of [Client.WithDefinitions] are not saved.
func (c *Client) Save(ctx context.Context, dir string) error {
	target := &folder{dir: dir}
	saved := &savedIndex{Documents: index{}}
	err := c.eachDocument(ctx, func(path string, document *Document) error {
		saved.Documents[path] = c.hashes[path]
		return target.writeDocument(path, c.hashes[path], document.raw)
	})
	if err == nil {
		err = target.writeIndex(saved)
	}
	if err != nil {
		return fmt.Errorf("save schemas %s: %w", dir, err)
	}
	return nil
}

func (c *shared) lock(ctx context.Context) error {
	select {
	case c.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return retry.ContextError(ctx)
	}
}

func (c *shared) unlock() { <-c.busy }

// pathOf returns the path of a group version's document: apis/apps/v1 or api/v1.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// kindText returns a kind as users write it: Deployment of apps/v1.
func kindText(gvk schema.GroupVersionKind) string {
	return gvk.Kind + " of " + gvk.GroupVersion().String()
}
