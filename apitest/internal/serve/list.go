package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// list responds with the objects of a resource, or a page of them.
func (c *call) list() error {
	m, found := negotiate(c.req, false, "Table", "PartialObjectMetadataList")
	if !found {
		return c.errNotAcceptable(acceptable + acceptableWatch)
	}
	opts, err := c.listOptions()
	if err != nil {
		return err
	}
	c.encodesItems = m.as == "" && !m.yaml && !m.pretty
	page, err := c.listPage(opts)
	if err != nil {
		return err
	}
	if c.encodesItems {
		return c.writeList(m, page)
	}
	list, err := c.transform(m, page, false, "")
	if err != nil {
		return err
	}
	writeObject(c.w, c.req, m, http.StatusOK, list)
	return nil
}

// writeList writes a list with encoded items, without a copy of them.
func (c *call) writeList(m media, list map[string]any) error {
	items, _ := list["items"].([]any)
	list["items"] = []any{}
	empty, err := encode(m, list)
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(empty, []byte(`"items":[]`)) // the first field of the list, but for apiVersion
	parts := [][]byte{before, []byte(`"items":[`)}
	for i, item := range items {
		if i > 0 {
			parts = append(parts, []byte(","))
		}
		text, _ := item.(json.RawMessage)
		parts = append(parts, text)
	}
	writeBody(c.w, c.req, m, http.StatusOK, append(parts, []byte("]"), after)...)
	return nil
}

// continueToken has the format of the API server. Start follows the last listed key. Revision is -1 for the latest, to continue a
// list after the compaction of its revision.
type continueToken struct {
	APIVersion string `json:"v"`
	Revision   int64  `json:"rv"`
	Start      string `json:"start"`
}

func (t continueToken) String() string {
	text, _ := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseContinue(text string) (continueToken, error) {
	const invalid = "continue key is not valid"
	var token continueToken
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &token)
	}
	switch {
	case err != nil:
		return token, fmt.Errorf("%s: %w", invalid, err)
	case token.APIVersion != "meta.k8s.io/v1":
		return token, fmt.Errorf("%s: server does not recognize this encoded version %s", invalid, token.APIVersion)
	case token.Revision == 0:
		return token, fmt.Errorf("%s: incorrect encoded start resourceVersion (version meta.k8s.io/v1)", invalid)
	case token.Start == "":
		return token, fmt.Errorf("%s: encoded start key empty (version meta.k8s.io/v1)", invalid)
	}
	if key := "/" + strings.TrimPrefix(token.Start, "/"); path.Clean(key) != key {
		return token, fmt.Errorf("%s: %s", invalid, token.Start)
	}
	return token, nil
}

func (c *call) listPage(opts *listOptions) (map[string]any, error) {
	revision, token, err := c.listRevision(opts)
	if err != nil {
		return nil, err
	}
	limit := int(opts.Limit)
	fromCache := opts.ResourceVersion == "0" && opts.ResourceVersionMatch != metav1.ResourceVersionMatchExact
	if fromCache || c.listsOneKey(opts) { // not paged by the API server
		limit = 0
	}
	items, at, after, remaining, err := c.selectPage(opts, revision, token, limit)
	switch {
	case errors.Is(err, store.ErrCompacted):
		return nil, errCompactedList(token)
	case errors.Is(err, store.ErrFuture):
		return nil, errTooLargeRevision(revision, at)
	case err != nil:
		return nil, err
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(at, 10)}
	if opts.shardInfo != "" && c.resource.Definition == nil {
		metadata["shardInfo"] = map[string]any{"selector": opts.shardInfo}
	}
	if c.resource.Definition != nil {
		metadata["continue"] = "" // lists of custom resources are untyped
	}
	if after != "" {
		metadata["continue"] = continueToken{"meta.k8s.io/v1", at, after}.String()
		if opts.isEmpty() {
			metadata["remainingItemCount"] = remaining
		}
	}
	return map[string]any{
		"apiVersion": c.resource.APIVersion(), "kind": c.resource.ListKind, "metadata": metadata, "items": items,
	}, nil
}

// listsOneKey reports whether a field selector selects a single name. The API server then gets the object by its key and does not
// page.
func (c *call) listsOneKey(opts *listOptions) bool {
	if opts.FieldSelector == nil || opts.Continue != "" || c.resource.Namespaced && c.info.Namespace == "" {
		return false
	}
	_, isExact := opts.FieldSelector.RequiresExactMatch("metadata.name")
	return isExact
}

// listRevision returns the revision to list at, 0 for the latest, and the continue token, if any. It waits for a future revision.
func (c *call) listRevision(opts *listOptions) (int64, *continueToken, error) {
	if opts.Continue != "" {
		token, err := parseContinue(opts.Continue)
		if err != nil {
			return 0, nil, apierrors.NewBadRequest("invalid continue token: " + err.Error())
		}
		if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
			return 0, nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		return max(token.Revision, 0), &token, nil
	}
	if opts.ResourceVersion == "" || opts.ResourceVersion == "0" {
		return 0, nil, nil
	}
	revision, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return 0, nil, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if err := c.awaitRevision(revision); err != nil {
		return 0, nil, err
	}
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact || opts.ResourceVersionMatch == "" && opts.Limit > 0 {
		return revision, nil, nil
	}
	return 0, nil, nil
}

// maxScan is the number of objects that are read at once to find selected objects.
const maxScan = 500

// selectPage returns up to limit selected objects from the token's key on, and their revision. If there are more objects, after is
// the key after the page, and remaining is their number in a list without selectors. limit 0 means all.
func (c *call) selectPage(opts *listOptions, revision int64, token *continueToken, limit int) (items []any, at int64, after string, remaining int64, err error) {
	items = []any{}
	query := store.Query{Group: c.resource.Group, Resource: c.resource.Plural, Namespace: c.namespace(), Revision: revision}
	if token != nil {
		query.Start = strings.TrimPrefix(token.Start, "/")
	}
	switch {
	case limit > 0 && opts.isEmpty(): // the objects of all shards are counted
		query.Limit = limit
		query.Count = true
	case limit > 0:
		query.Limit = max(limit, maxScan)
	}
	for {
		page, err := c.Store.Page(query)
		if err != nil {
			return nil, page.Revision, "", 0, err
		}
		for i := range page.Len() {
			object := page.Object(i)
			view, err := c.Writer.View(c.req.Context(), c.resource, object)
			if err != nil {
				return nil, page.Revision, "", 0, err
			}
			if !opts.matches(view) {
				continue
			}
			item, err := c.listItem(view)
			if err != nil {
				return nil, page.Revision, "", 0, err
			}
			items = append(items, item)
			if limit <= 0 || len(items) < limit {
				continue
			}
			if page.More || i < page.Len()-1 {
				after = c.listKey(object) + "\x00"
			}
			return items, page.Revision, after, int64(page.Remaining), nil
		}
		if !page.More {
			return items, page.Revision, "", 0, nil
		}
		query.Start = c.listKey(page.Object(page.Len()-1)) + "\x00"
		query.Revision = page.Revision
	}
}

// listKey returns the part of an object's key for the continue token.
func (c *call) listKey(obj store.Object) string {
	metadata := nested.Map(obj, "metadata")
	name := nested.String(metadata, "name")
	if c.resource.Namespaced && c.info.Namespace == "" {
		namespace := nested.String(metadata, "namespace")
		return namespace + "/" + name
	}
	return name
}

// listItem returns an object as an item of a list. Items of built-in lists have no kind.
func (c *call) listItem(obj map[string]any) (any, error) {
	if c.resource.Definition == nil {
		obj = maps.Clone(obj)
		delete(obj, "kind")
		delete(obj, "apiVersion")
	}
	if !c.encodesItems {
		return obj, nil
	}
	text, err := json.Marshal(obj)
	return json.RawMessage(text), err
}

// maxRevisionWait is the API server's maximum wait for a future revision.
const maxRevisionWait = 3 * time.Second

func (c *call) awaitRevision(revision int64) error {
	if c.Store.Revision() >= revision {
		return nil
	}
	timer := time.NewTimer(maxRevisionWait)
	defer timer.Stop()
	w, err := c.Store.WatchAll(0)
	if err != nil {
		return err
	}
	for {
		_, current, more, err := w.Next(100)
		if err != nil || current >= revision {
			return nil
		}
		select {
		case <-more:
		case <-timer.C:
			return errTooLargeRevision(revision, current)
		case <-c.req.Context().Done():
			return c.req.Context().Err()
		}
	}
}

// errCompactedList returns a 410 error. For a continued list it includes a token to continue at the latest revision.
func errCompactedList(token *continueToken) error {
	if token == nil {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.Continue = continueToken{"meta.k8s.io/v1", -1, token.Start}.String()
	return err
}
