package clients

import (
	"encoding/json"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// Actions returns the finished requests of all clients as the actions of client-go's fakes, in the order of their end. Discovery and
// running watches are omitted. Failed requests are included. A type is the scheme's if it has the kind, otherwise
// *unstructured.Unstructured.
func (c *Clients) Actions() []clienttesting.Action {
	var actions []clienttesting.Action
	for _, request := range c.Server.Requests(isAction) {
		actions = append(actions, c.actionOf(&request))
	}
	return actions
}

func isAction(r apitest.Request) bool { return r.Resource != "" && r.UserAgent != setupAgent }

func (c *Clients) actionOf(r *apitest.Request) clienttesting.Action {
	base := clienttesting.ActionImpl{
		Namespace: r.Namespace, Verb: r.Verb, Subresource: r.Subresource,
		Resource: schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource},
	}
	switch r.Verb {
	case "create":
		action := clienttesting.CreateActionImpl{ActionImpl: base, Name: r.Name, Object: c.decode(r.Body)}
		decodeOptions(r.Query, &action.CreateOptions)
		return action
	case "update":
		action := clienttesting.UpdateActionImpl{ActionImpl: base, Object: c.decode(r.Body)}
		decodeOptions(r.Query, &action.UpdateOptions)
		return action
	case "patch":
		action := clienttesting.PatchActionImpl{ActionImpl: base, Name: r.Name, PatchType: types.PatchType(r.ContentType), Patch: r.Body}
		decodeOptions(r.Query, &action.PatchOptions)
		return action
	case "delete":
		action := clienttesting.DeleteActionImpl{ActionImpl: base, Name: r.Name}
		decodeOptions(r.Query, &action.DeleteOptions)
		decodeDeleteOptions(r.Body, &action.DeleteOptions)
		return action
	case "get":
		return clienttesting.GetActionImpl{ActionImpl: base, Name: r.Name}
	default:
		return c.collectionAction(base, r)
	}
}

// collectionAction returns the action of list, watch or deletecollection.
func (c *Clients) collectionAction(base clienttesting.ActionImpl, r *apitest.Request) clienttesting.Action {
	var opts metav1.ListOptions
	decodeOptions(r.Query, &opts)
	labels, fields, resourceVersion := clienttesting.ExtractFromListOptions(opts)
	switch r.Verb {
	case "deletecollection":
		base.Verb = "delete-collection" // the fakes' name
		action := clienttesting.DeleteCollectionActionImpl{
			ActionImpl: base, ListRestrictions: clienttesting.ListRestrictions{Labels: labels, Fields: fields}, ListOptions: opts,
		}
		decodeDeleteOptions(r.Body, &action.DeleteOptions)
		return action
	case "watch":
		return clienttesting.WatchActionImpl{
			ActionImpl: base, ListOptions: opts,
			WatchRestrictions: clienttesting.WatchRestrictions{Labels: labels, Fields: fields, ResourceVersion: resourceVersion},
		}
	default:
		action := clienttesting.ListActionImpl{
			ActionImpl: base, ListRestrictions: clienttesting.ListRestrictions{Labels: labels, Fields: fields}, ListOptions: opts,
		}
		action.Kind, _ = c.Client.RESTMapper().KindFor(base.Resource) // a list of an unknown resource has no kind
		return action
	}
}

// decode returns the object of a body. It returns nil for no body: bodies of old requests are dropped.
func (c *Clients) decode(body []byte) runtime.Object {
	if len(body) == 0 {
		return nil
	}
	if obj, _, err := serializer.NewCodecFactory(c.scheme).UniversalDeserializer().Decode(body, nil, nil); err == nil {
		return obj
	}
	obj := &unstructured.Object{}
	if err := obj.UnmarshalJSON(body); err != nil {
		return nil // the server has rejected it
	}
	return obj
}

func decodeDeleteOptions(body []byte, opts *metav1.DeleteOptions) {
	if len(body) > 0 {
		_ = json.Unmarshal(body, opts) // the server has already reported an invalid body
	}
}

// decodeOptions decodes the query parameters of a request. The server has already reported invalid parameters.
func decodeOptions(query string, opts runtime.Object) {
	if values, err := url.ParseQuery(query); err == nil {
		_ = scheme.ParameterCodec.DecodeParameters(values, corev1.SchemeGroupVersion, opts)
	}
}
