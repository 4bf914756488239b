package dynamic

import (
	"context"
	"net/http"
	"net/url"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metaVersion is the apiVersion of what the server makes of any kind of object.
const metaVersion = "meta.k8s.io/v1"

// form is what a handle wants its answers to be; the zero form is the objects themselves.
type form struct {
	as      string // a kind of metaVersion
	include metav1.IncludeObjectPolicy
}

// amount tells answers that are one object, or a stream of them, from those that are a list.
type amount int

const (
	single amount = iota
	list
)

// accept is the header that asks for the form; behind it stands what a server does that does not know the form.
func (f form) accept(many amount) string {
	kind := f.as
	if kind == partialKind && many == list {
		kind += "List"
	}
	return jsonType + ";as=" + kind + ";v=v1;g=meta.k8s.io," + jsonType
}

// do makes a request for objects in the form that the handle wants.
func (r *Resource) do(ctx context.Context, request *transport.Request, many amount) (*http.Response, error) {
	if r.form.as == "" {
		return r.conn.Do(ctx, request)
	}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Accept", r.form.accept(many))
	if r.form.include != "" {
		if request.Query == nil {
			request.Query = url.Values{}
		}
		request.Query.Set("includeObject", string(r.form.include))
	}
	response, err := r.conn.Do(ctx, request)
	// A server may notice that it cannot leave something out when it has the object; a write is done then.
	if apierrors.IsNotAcceptable(err) && r.form.as == partialKind && request.Method == http.MethodGet {
		request.Header.Set("Accept", jsonType)
		return r.conn.Do(ctx, request)
	}
	return response, err
}
