package write_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/controllers"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
	"github.com/anykind/anykind/unstructured"
)

// TestRecorded_Writer compares the Writer's responses with the real API server's.
func TestRecorded_Writer(t *testing.T) {
	for _, scenario := range scenarios(t) {
		t.Run(namespaceOf(scenario), func(t *testing.T) {
			t.Parallel()
			p := newWriterPlayer(t)
			namespace := namespaceOf(scenario)
			p.mustSend(t, request{method: "POST", path: "/api/v1/namespaces", agent: "scenario/1", body: `{"metadata":{"name":"` + namespace + `"}}`})
			compareRecorded(t, readRecorded(t, recordedPath(scenario)), play(t, p, namespace, readScenario(t, scenario)))
		})
	}
}

// writerPlayer passes requests to a Writer, with as little routing as the scenarios need.
type writerPlayer struct {
	store    *store.Store
	registry *kinds.Registry
	writer   *write.Writer
}

func newWriterPlayer(t *testing.T) *writerPlayer {
	t.Helper()
	p := &writerPlayer{store: store.New(store.DefaultLimit), registry: kinds.New(nil)}
	p.writer = write.New(write.Config{Store: p.store, Registry: p.registry})
	p.store.SetOnWrite(controllers.NewDefinitions(t.Context(), p.store, p.registry, p.writer, time.Now).Observe)
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		p.mustSend(t, request{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"` + name + `"}}`})
	}
	for _, req := range readScenario(t, "testdata/setup.txt") {
		p.mustSend(t, req)
	}
	return p
}

func (p *writerPlayer) mustSend(t *testing.T, req request) {
	t.Helper()
	code, _, body := p.send(t, req)
	require.Less(t, code, 300, "%s: %v", describe(req), body)
}

func (p *writerPlayer) send(t *testing.T, req request) (code int, warnings []string, body map[string]any) {
	t.Helper()
	target := targetOf(t, req.path)
	resource := p.registry.Lookup(target.group, target.version, target.plural)
	if resource == nil {
		return p.response(t, write.Result{}, apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true))
	}
	wr := &write.Request{
		Resource: resource, Subresource: target.subresource, Namespace: target.namespace, Name: target.name,
		Query: target.query, UserAgent: req.agent,
	}
	content := write.Body{Data: []byte(req.body), MediaType: req.mediaType}
	var result write.Result
	var err error
	switch {
	case req.method == "GET":
		result, err = p.get(t, wr)
	case req.method == "POST":
		result, err = p.writer.Create(t.Context(), wr, content)
	case req.method == "PUT":
		result, err = p.writer.Update(t.Context(), wr, content)
	case req.method == "PATCH":
		result, err = p.writer.Patch(t.Context(), wr, content)
	case target.name != "":
		result, err = p.writer.Delete(t.Context(), wr, content)
	default:
		result, err = p.deleteCollection(t, wr, content)
	}
	return p.response(t, result, err)
}

func (p *writerPlayer) get(t *testing.T, req *write.Request) (write.Result, error) {
	t.Helper()
	resource := req.Resource
	obj, exists := p.store.Get(store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: req.Namespace, Name: req.Name})
	if !exists {
		return write.Result{}, apierrors.NewNotFound(resource.GroupResource(), req.Name)
	}
	obj, err := p.writer.View(t.Context(), resource, obj)
	require.NoError(t, err)
	if req.Subresource == "scale" {
		obj, err = write.ScaleOf(resource, obj)
	}
	return write.Result{Object: obj, Code: http.StatusOK}, err
}

func (p *writerPlayer) deleteCollection(t *testing.T, req *write.Request, body write.Body) (write.Result, error) {
	t.Helper()
	selector, err := labels.Parse(req.Query.Get("labelSelector"))
	require.NoError(t, err)
	return p.writer.DeleteCollection(t.Context(), req, body, func() (map[string]any, error) {
		stored, revision, err := p.store.List(req.Resource.Group, req.Resource.Plural, req.Namespace, 0)
		items := []any{}
		for _, obj := range stored {
			view, err := p.writer.View(t.Context(), req.Resource, obj)
			require.NoError(t, err)
			item := (&unstructured.Object{Object: view}).DeepCopy()
			if !selector.Matches(labels.Set(item.GetLabels())) {
				continue
			}
			if req.Resource.Definition == nil {
				delete(item.Object, "kind")
				delete(item.Object, "apiVersion")
			}
			items = append(items, item.Object)
		}
		metadata := map[string]any{"resourceVersion": fmt.Sprint(revision)}
		if req.Resource.Definition != nil {
			metadata["continue"] = ""
		}
		return map[string]any{"kind": req.Resource.ListKind, "apiVersion": req.Resource.APIVersion(), "items": items, "metadata": metadata}, err
	})
}

// response returns a result or an error as HTTP has it.
func (p *writerPlayer) response(t *testing.T, result write.Result, err error) (code int, warnings []string, body map[string]any) {
	t.Helper()
	var value any = result.Object
	code = result.Code
	if err != nil {
		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status)
		content := status.Status()
		content.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code = int(content.Code)
		value = content
	}
	content, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &body))
	warnings = slices.DeleteFunc(result.Warnings, func(text string) bool { return strings.HasPrefix(text, "apitest: ") })
	return code, warnings, body
}
