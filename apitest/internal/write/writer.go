// Package write has the API server's write path without HTTP: create, update, patch, apply and delete with their rules for
// metadata, managed fields, subresources and admission.
//
// A write is a loop: read the stored object, compute the new one, store it on the condition that the stored object has not
// changed, and start again if it has. Objects of the store are never modified; what is computed is a copy.
package write

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Config has the dependencies of a Writer.
type Config struct {
	Store     *store.Store
	Registry  *kinds.Registry
	Admission Admission        // nil: every write is admitted unchanged
	Access    *access.Access   // nil: every user may do everything
	Now       func() time.Time // nil: time.Now
	Seed      uint64           // of UIDs and generated names; 0: they are random
}

// Writer executes writes. It is safe for concurrent use.
type Writer struct {
	store     *store.Store
	registry  *kinds.Registry
	admission Admission
	access    *access.Access
	now       func() time.Time
	managers  managerCache
	rules     ruleCache
	random    *random
}

// New returns a Writer for one server.
func New(config Config) *Writer {
	w := &Writer{store: config.Store, registry: config.Registry, admission: config.Admission, access: config.Access, now: config.Now, random: newRandom(config.Seed)}
	if w.now == nil {
		w.now = time.Now
	}
	return w
}

// Request is a write to one resource. Name is empty for create (unless the subresource is created by name, such as
// eviction) and for deletecollection.
type Request struct {
	Resource    *kinds.Resource
	Subresource string
	Namespace   string
	Name        string
	Query       url.Values // the options of the verb, as the request's URL has them
	User        access.User
	UserAgent   string // the field manager's name if Query has none
}

// Body is the body of a request. Its media type is application/json or application/yaml; for a patch it is the patch type.
// Object, if not nil, is the decoded content and is used instead of Data; it is not modified. Err is why Data cannot be decoded.
type Body struct {
	Data      []byte
	MediaType string
	Object    map[string]any
	Err       error
}

// Result is the outcome of a write. Warnings are set with and without an error; Object and Code only without. Object is a
// Status for most deletions, in the version of the request otherwise.
type Result struct {
	Object   map[string]any
	Code     int
	Warnings []string
}

const (
	optimisticLockMessage = "the object has been modified; please apply your changes to the latest version and try again"
	namespaceMismatch     = "the namespace of the provided object does not match the namespace sent on the request"
)

// statusError returns err as the API reports it: an error without a Status is an internal one without a reason.
func statusError(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}
