// Package write implements the API server's write path without HTTP: create, update, patch, apply and delete with their rules for
// metadata, managed fields, subresources and admission.
//
// A write is a loop: read the stored object, compute the new object from a copy, store it if the stored object has not changed,
// or retry. Stored objects are never modified.
package write

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Config has the dependencies of a Writer.
type Config struct {
	Store     *store.Store
	Registry  *kinds.Registry
	Admission *admission.Admission // nil: the default plugins only
	Access    *access.Access       // nil: everything is allowed
	Now       func() time.Time     // nil: time.Now
	Seed      uint64               // of UIDs and generated names; 0: random
}

// Writer executes writes. It is safe for concurrent use.
type Writer struct {
	store     *store.Store
	registry  *kinds.Registry
	admission *admission.Admission
	access    *access.Access
	now       func() time.Time
	managers  managerCache
	rules     ruleCache
	random    *random
}

// New returns a Writer.
func New(config Config) *Writer {
	w := &Writer{store: config.Store, registry: config.Registry, admission: config.Admission, access: config.Access, now: config.Now, random: newRandom(config.Seed)}
	if w.admission == nil {
		w.admission = admission.New(admission.Config{Store: w.store, Registry: w.registry, Access: w.access, DisableWebhooks: true})
	}
	if w.now == nil {
		w.now = time.Now
	}
	return w
}

// Request is a write to a resource. Name is empty for deletecollection and for create, except for subresources such as eviction.
type Request struct {
	Resource    *kinds.Resource
	Subresource string
	Namespace   string
	Name        string
	Query       url.Values // the options of the verb, from the request's URL
	User        access.User
	UserAgent   string // default of the field manager
}

// Body is the body of a request. Its media type is application/json, application/yaml or a patch type. Object, if not nil, is the
// decoded content and replaces Data; it is not modified. Err is the decoding error of Data.
type Body struct {
	Data      []byte
	MediaType string
	Object    map[string]any
	Err       error
}

// Result is the outcome of a write. Warnings may be set with an error, Object and Code only without. Object is a Status for most
// deletions, otherwise the object in the request's version.
type Result struct {
	Object   map[string]any
	Code     int
	Warnings []string
}

const (
	optimisticLockMessage = "the object has been modified; please apply your changes to the latest version and try again"
	namespaceMismatch     = "the namespace of the provided object does not match the namespace sent on the request"
)

// statusError converts err to a Status. Other errors become an internal error without a reason.
func statusError(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}
