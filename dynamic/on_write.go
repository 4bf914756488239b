package dynamic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Write is a write of one object that the server has accepted; see [Resource.OnWrite].
type Write struct {
	Namespace, Name string
	// UID is "" if the response lacks it.
	UID types.UID
	// ResourceVersion is the object's after the write, "" if the server has deleted the object and the response lacks the
	// version of the deletion: a Status, or the object as it was when its last finalizer was removed.
	ResourceVersion string
}

// OnWrite returns a handle that calls f after each successful Create, Update, Patch, Apply, Upsert, Scale and Delete, before
// the verb returns, also if the verb returns an error since the response cannot be decoded. f is called by the goroutine of
// the verb, possibly by several at the same time. Handles on other namespaces or subresources that are made from this one
// call f, too. A handle can have several functions. Not reported are dry runs, [Resource.DeleteCollection],
// [Resource.Evict], and writes whose response is lost.
func (r *Resource) OnWrite(f func(Write)) *Resource {
	changed := *r
	changed.onWrite = f
	if earlier := r.onWrite; earlier != nil {
		changed.onWrite = func(w Write) { earlier(w); f(w) }
	}
	return &changed
}

// reportWrite calls onWrite if a request, which was answered with body, has written an object.
func (r *Resource) reportWrite(request *transport.Request, body []byte) {
	if r.onWrite == nil || request.Method == http.MethodGet || isDryRun(request) {
		return
	}
	var response struct {
		Kind     string               `json:"kind"`
		Status   json.RawMessage      `json:"status"`
		Details  metav1.StatusDetails `json:"details"`
		Metadata struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`

			DeletionTimestamp          string   `json:"deletionTimestamp"`
			DeletionGracePeriodSeconds int64    `json:"deletionGracePeriodSeconds"`
			Finalizers                 []string `json:"finalizers"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(body, &response) // of a delete, the body may be empty
	meta := &response.Metadata
	// The server deletes an object when an update leaves it without finalizers after a deletion was requested, and responds with
	// the resourceVersion of the state before. Namespaces have finalizers in their spec as well.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/.
	isDeleted := meta.DeletionTimestamp != "" && len(meta.Finalizers) == 0 && meta.DeletionGracePeriodSeconds == 0 && response.Kind != "Namespace"
	write := Write{"", meta.Name, meta.UID, meta.ResourceVersion}
	if r.isNamespaced() || r.isScopeUnknown {
		write.Namespace = cmp.Or(meta.Namespace, r.namespace)
	}
	switch {
	case request.Method != http.MethodDelete && isDeleted && err == nil:
		write.ResourceVersion = ""
	case write.ResourceVersion != "" && write.Name != "" && err == nil && response.Kind != "Status":
	case request.Method != http.MethodDelete || string(response.Status) == `"`+metav1.StatusFailure+`"`:
		return
	default:
		write.UID, write.ResourceVersion = response.Details.UID, ""
		write.Name, _ = url.PathUnescape(request.Path[strings.LastIndexByte(request.Path, '/')+1:]) // escaped by Resource.path
	}
	r.onWrite(write)
}

func isDryRun(request *transport.Request) bool {
	if request.Method != http.MethodDelete {
		return request.Query.Get("dryRun") != ""
	}
	var opts metav1.DeleteOptions
	return json.Unmarshal(request.Body, &opts) == nil && len(opts.DryRun) > 0
}
