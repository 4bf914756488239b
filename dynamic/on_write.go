package dynamic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/transport"
)

// Write is an accepted write of an object; see [Handle.OnWrite].
type Write struct {
	Namespace, Name string
	// UID is "" if the response lacks it.
	UID types.UID
	// ResourceVersion is the object's after the write, "" if the server has deleted the object and the response lacks the
	// version of the deletion: a Status, or the object as it was when its last finalizer was removed.
	ResourceVersion string
}

// OnWrite returns a handle that calls begin before each write of an object. After an accepted Create, Update, Patch, Apply,
// Upsert, Scale or Delete, the verb calls end, the result of begin, unless end is nil. name is "" for a Create, namespace is "" for
// a cluster-scoped resource. The goroutine of the verb calls both functions before the verb returns, also if the response cannot
// be decoded. Concurrent verbs call them concurrently. Handles made from this handle, for a namespace or a subresource, call begin,
// too. A handle can have several functions. Dry runs, [Handle.DeleteCollection], [Handle.Evict], and writes with a lost response
// are not reported.
func (h *Handle[T]) OnWrite(begin func(ctx context.Context, namespace, name string) (end func(Write))) *Handle[T] {
	changed := *h
	changed.onWrite = append(slices.Clip(h.onWrite), begin)
	return &changed
}

// beginWrite calls the functions of OnWrite if a request writes an object, and returns the functions to call at its end.
func (e *endpoint) beginWrite(ctx context.Context, request *transport.Request) (ends []func(Write)) {
	if len(e.onWrite) == 0 || request.Method == http.MethodGet || isDryRun(request) {
		return nil
	}
	for _, begin := range e.onWrite {
		if end := begin(ctx, e.writeNamespace(), e.requestName(request)); end != nil {
			ends = append(ends, end)
		}
	}
	return ends
}

// writeNamespace returns the namespace of written objects. The handle of a cluster-scoped resource may have a default namespace.
func (e *endpoint) writeNamespace() string {
	if e.isNamespaced() || e.isScopeUnknown {
		return e.namespace
	}
	return ""
}

// requestName returns the name in a request's path, "" for a collection.
func (e *endpoint) requestName(request *transport.Request) string {
	rest, _ := strings.CutPrefix(request.Path, e.path(""))
	escaped, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	name, _ := url.PathUnescape(escaped) // escaped by endpoint.path
	return name
}

// reportWrite calls ends if a request with this response body has written an object.
func (e *endpoint) reportWrite(ends []func(Write), request *transport.Request, body []byte) {
	if len(ends) == 0 {
		return
	}
	var response struct {
		Kind     string          `json:"kind"`
		Status   json.RawMessage `json:"status"`
		Details  json.RawMessage `json:"details"` // of a Status; objects may have a field of this name
		Metadata struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`

			DeletionTimestamp          string          `json:"deletionTimestamp"`
			DeletionGracePeriodSeconds *int64          `json:"deletionGracePeriodSeconds"`
			Finalizers                 json.RawMessage `json:"finalizers"` // not decoded: it may be long
		} `json:"metadata"`
	}
	err := json.Unmarshal(body, &response) // of a delete, the body may be empty
	meta := &response.Metadata
	// The server deletes an object when an update leaves it without finalizers after a deletion was requested, and responds with
	// the resourceVersion of the state before. The deletion had set the grace period to 0. Namespaces and further objects
	// kept for their contents have no grace period.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/.
	gracePeriod := meta.DeletionGracePeriodSeconds
	isDeleted := meta.DeletionTimestamp != "" && !bytes.ContainsRune(meta.Finalizers, '"') && gracePeriod != nil && *gracePeriod == 0
	write := Write{cmp.Or(meta.Namespace, e.writeNamespace()), meta.Name, meta.UID, meta.ResourceVersion}
	switch {
	case request.Method != http.MethodDelete && isDeleted && err == nil:
		write.ResourceVersion = ""
	case write.ResourceVersion != "" && write.Name != "" && err == nil && response.Kind != "Status":
	case request.Method != http.MethodDelete || string(response.Status) == `"`+metav1.StatusFailure+`"`:
		return
	default:
		var details struct{ UID types.UID }
		_ = json.Unmarshal(response.Details, &details) // without a UID it is ""
		write.UID = details.UID
		write.ResourceVersion = ""
		write.Name = e.requestName(request)
	}
	for _, end := range ends {
		end(write)
	}
}

func isDryRun(request *transport.Request) bool {
	if request.Method != http.MethodDelete {
		return request.Query.Get("dryRun") != ""
	}
	var opts metav1.DeleteOptions
	return json.Unmarshal(request.Body, &opts) == nil && len(opts.DryRun) > 0
}
