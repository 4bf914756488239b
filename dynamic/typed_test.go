package dynamic_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// guest has a few fields of a pod.
type guest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Priority int32            `json:"priority"`
		Node     string           `json:"nodeName,omitempty"`
		Image    *struct{ A int } `json:"image,omitempty"`
	} `json:"spec"`
}

func guestNamed(name string, priority int32) *guest {
	one := &guest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	one.Spec.Priority = priority
	return one
}

// TestHandle_Requests compares the request of each verb.
func TestHandle_Requests(t *testing.T) {
	const sent = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"priority":8}}`
	for want, call := range map[string]func(*testing.T, *dynamic.Handle[guest]) (*guest, error){
		`GET /api/v1/namespaces/home/pods/web?resourceVersion=0`: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Get(t.Context(), "web", &metav1.GetOptions{ResourceVersion: "0"})
		},
		`GET /api/v1/namespaces/shop/pods/web/status`: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Namespace("shop").Subresource("status").Get(t.Context(), "web", nil)
		},
		`POST /api/v1/namespaces/home/pods?fieldManager=me application/json ` + sent: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Create(t.Context(), guestNamed("web", 8), &metav1.CreateOptions{FieldManager: "me"})
		},
		`PUT /api/v1/namespaces/home/pods/web?fieldManager=me application/json ` + sent: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Update(t.Context(), guestNamed("web", 8), &metav1.UpdateOptions{FieldManager: "me"})
		},
		`PATCH /api/v1/namespaces/home/pods/web?fieldManager=me&force=false application/apply-patch+yaml ` + sent: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Apply(t.Context(), guestNamed("web", 8), &metav1.ApplyOptions{FieldManager: "me"})
		},
		`PATCH /api/v1/namespaces/home/pods/web application/merge-patch+json {"spec":{"priority":8}}`: func(t *testing.T, pods *dynamic.Handle[guest]) (*guest, error) {
			return pods.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"priority":8}}`), nil)
		},
	} {
		t.Run(want, func(t *testing.T) {
			client, server := script(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"priority":7,"more":[1]}}`)
			got, err := call(t, dynamic.As[guest](resource(t, client, "pods")))
			require.NoError(t, err)
			assert.Equal(t, []string{want}, server.seen())
			assert.Equal(t, int32(7), got.Spec.Priority)
			assert.Equal(t, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, got.TypeMeta)
		})
	}
}

func TestHandle_ListAndWatch(t *testing.T) {
	const item = `{"metadata":{"name":"a"},"spec":{"priority":7}}`
	client, server := script(t,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[`+item+`]}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`+item+`]}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`+item+`]}`,
		`{"type":"ADDED","object":`+podReply+`}{"type":"BOOKMARK","object":`+podReply+`}{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	pages := 0
	pods := dynamic.As[guest](resource(t, client, "pods")).AllNamespaces().WithPageOptions(&dynamic.PageOptions{OnPage: func(metav1.ListMeta) { pages++ }})
	count := 0
	for one, err := range pods.List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "Pod", one.Kind)
		assert.Equal(t, int32(7), one.Spec.Priority)
		count++
	}
	assert.Equal(t, []int{2, 2}, []int{count, pages})

	page, err := pods.ListPage(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, "9", page.ResourceVersion)
	assert.Equal(t, "a", page.Items[0].Name)

	var seen []watch.EventType
	for event, err := range pods.Watch(t.Context(), nil) {
		if err != nil {
			assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
			break
		}
		seen = append(seen, event.Type)
		assert.Equal(t, "web", event.Object.Name)
	}
	assert.Equal(t, []watch.EventType{watch.Added, watch.Bookmark}, seen)
	assert.Equal(t, []string{"GET /api/v1/pods?limit=500", "GET /api/v1/pods?continue=more&limit=500", "GET /api/v1/pods", "GET /api/v1/pods?watch=true"}, server.seen())
}

// TestHandle_KeepsItsType rejects a promoted method with an untyped handle or object.
func TestHandle_KeepsItsType(t *testing.T) {
	otherKinds := []string{"Scale"}
	for method := range reflect.TypeFor[*dynamic.Handle[guest]]().Methods() {
		if signature := method.Type.String(); !slices.Contains(otherKinds, method.Name) {
			assert.NotContains(t, signature, reflect.TypeFor[*dynamic.Resource]().String(), method.Name)
			assert.NotContains(t, signature, reflect.TypeFor[unstructured.Object]().String(), method.Name)
		}
	}
}

func TestHandle_VerbsOnSeveralObjects(t *testing.T) {
	list := responseTo("list", "Pod", podReply)
	client, _ := script(t, list, list)
	var written []dynamic.Write
	pods := dynamic.As[guest](resource(t, client, "pods")).OnWrite(func(context.Context, string, string) func(dynamic.Write) {
		return func(w dynamic.Write) { written = append(written, w) }
	})
	page, err := pods.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "web", page.Items[0].Name)
	err = pods.Metadata().ForEach(t.Context(), nil, nil, func(_ context.Context, in *dynamic.Handle[guest], pod *guest) error {
		assert.Equal(t, "pods", in.String())
		assert.Equal(t, "web", pod.Name)
		return nil
	})
	require.NoError(t, err)
	assert.Empty(t, written)

	client, _ = script(t, responseTo("list", "Pod", `{"metadata":{"name":"web"},"spec":{"priority":"high"}}`))
	err = dynamic.As[guest](resource(t, client, "pods")).ForEach(t.Context(), nil, nil, nil)
	assert.EqualError(t, err, `pods "web": decode pods "web" as dynamic_test.guest: .spec.priority: is string, not int32`)
}

func TestHandle_Wait(t *testing.T) {
	client, _ := script(t, podList("7", podReply))
	pod, err := dynamic.As[guest](resource(t, client, "pods")).Wait(t.Context(), "web", dynamic.Exists())
	require.NoError(t, err)
	assert.Equal(t, "web", pod.Name)
	client, _ = script(t, podList("7", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"priority":"high"}}`))
	_, err = dynamic.As[guest](resource(t, client, "pods")).Wait(t.Context(), "web", dynamic.Exists())
	assert.EqualError(t, err, `decode pods "shop/web" as dynamic_test.guest: .spec.priority: is string, not int32`)
}

func TestHandle_ConversionErrors(t *testing.T) {
	const bad = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"priority":"high"}}`
	const want = `decode pods "shop/web" as dynamic_test.guest: .spec.priority: is string, not int32`
	for verb, call := range map[string]func(*dynamic.Handle[guest]) error{
		"get": func(pods *dynamic.Handle[guest]) error {
			_, err := pods.Get(t.Context(), "web", nil)
			return err
		},
		"list":  func(pods *dynamic.Handle[guest]) error { return drain(pods.List(t.Context(), nil)) },
		"page":  func(pods *dynamic.Handle[guest]) error { _, err := pods.ListPage(t.Context(), nil); return err },
		"watch": func(pods *dynamic.Handle[guest]) error { return drain(pods.Watch(t.Context(), nil)) },
		"upsert": func(pods *dynamic.Handle[guest]) error {
			_, _, err := pods.Upsert(t.Context(), "web", func(*guest) error { return errors.New("called") }, nil)
			return err
		},
	} {
		reply := bad
		switch verb {
		case "list", "page":
			reply = responseTo("list", "Pod", bad)
		case "watch":
			reply = responseTo("watch", "Pod", bad)
		}
		client, _ := script(t, reply)
		err := call(dynamic.As[guest](resource(t, client, "pods")))
		if verb == "upsert" {
			require.ErrorContains(t, err, `upsert pods "web": `+strings.TrimPrefix(want, `decode pods "shop/web" as dynamic_test.guest: `), verb)
			continue
		}
		require.ErrorContains(t, err, want, verb)
	}
}

func TestHandle_RejectsInvalidObjects(t *testing.T) {
	client, server := script(t, podReply)
	pods := dynamic.As[guest](resource(t, client, "pods"))
	_, err := pods.Create(t.Context(), nil, nil)
	require.ErrorContains(t, err, "create pods: the object is nil")
	_, err = pods.Update(t.Context(), nil, nil)
	require.ErrorContains(t, err, "update pods: the object is nil")
	_, err = pods.Apply(t.Context(), nil, nil)
	require.ErrorContains(t, err, "patch pods: the object is nil")
	_, _, err = pods.Upsert(t.Context(), "web", nil, nil)
	require.ErrorContains(t, err, "the change to make is nil")
	number := 7
	_, err = dynamic.As[int](resource(t, client, "pods")).Create(t.Context(), &number, nil)
	require.ErrorContains(t, err, "create pods: cannot convert *int")
	_, err = pods.Create(t.Context(), &guest{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}, nil)
	require.ErrorContains(t, err, "Node")
	assert.Empty(t, server.seen())
}

func TestHandle_LazyAndMetadata(t *testing.T) {
	client, _ := script(t, responseTo("list", "Pod", whole))
	pods := resource(t, client, "pods")
	for lazy, err := range dynamic.As[unstructured.Lazy](pods).List(t.Context(), nil) {
		require.NoError(t, err)
		node, found, err := unstructured.Get[string](lazy, "spec", "nodeName")
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, "n", node)
	}
	for meta, err := range dynamic.As[metav1.PartialObjectMetadata](pods.Metadata()).List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, meta.TypeMeta)
		assert.Equal(t, "web", meta.Name)
	}
	for lazy, err := range dynamic.As[unstructured.Lazy](pods.Metadata()).List(t.Context(), nil) {
		require.NoError(t, err)
		assert.JSONEq(t, metadataOnly, string(lazy.JSON()), "the server sent all of it")
	}
	for obj, err := range dynamic.As[unstructured.Object](pods).List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "Pod", obj.GetKind())
	}
	client, server := script(t, podReply)
	lazy, err := unstructured.DecodeLazy([]byte(podReply))
	require.NoError(t, err)
	_, err = dynamic.As[unstructured.Lazy](resource(t, client, "pods")).Update(t.Context(), lazy, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{`PUT /api/v1/namespaces/home/pods/web application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"7"}}`}, server.seen())
}

// TestHandle_UpsertKeepsOtherFields compares what is written for a stored object and a change.
func TestHandle_UpsertKeepsOtherFields(t *testing.T) {
	const put = `PUT /api/v1/namespaces/home/pods/web application/json `
	for name, tc := range map[string]struct {
		stored string
		change func(*guest)
		writes string
		did    dynamic.UpsertResult
	}{
		"a field set": {`"spec":{"priority":7,"other":{"a":[1]}},"more":1`, func(g *guest) { g.Spec.Priority = 8 },
			put + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"7"},"more":1,"spec":{"other":{"a":[1]},"priority":8}}`, dynamic.UpsertUpdated},
		"a field removed": {`"spec":{"nodeName":"n","other":1}`, func(g *guest) { g.Spec.Node = "" },
			put + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"7"},"spec":{"other":1}}`, dynamic.UpsertUpdated},
		"an object added": {`"spec":{"other":1}`, func(g *guest) { g.Spec.Image = &struct{ A int }{1} },
			put + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"7"},"spec":{"image":{"A":1},"other":1}}`, dynamic.UpsertUpdated},
		"nothing": {`"spec":{"other":1}`, func(*guest) {}, "", dynamic.UpsertUnchanged},
		"missing": {"", func(g *guest) { g.Labels = map[string]string{"a": "b"} },
			`POST /api/v1/namespaces/home/pods application/json {"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"web","namespace":"home"},"spec":{"priority":0}}`, dynamic.UpsertCreated},
	} {
		t.Run(name, func(t *testing.T) {
			responses := []response{respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"},` + tc.stored + `}`), respond(podReply)}
			if tc.stored == "" {
				responses[0] = missing
			}
			pods, server := exchanging(t, responses...)
			made, did, err := dynamic.As[guest](pods).Upsert(t.Context(), "web", func(g *guest) error { tc.change(g); return nil }, nil)
			require.NoError(t, err)
			assert.Equal(t, tc.did, did)
			assert.Equal(t, "web", made.Name)
			if tc.writes == "" {
				assert.Len(t, server.seen(), 1)
				return
			}
			assert.Equal(t, strings.ReplaceAll(tc.writes, "/api/v1/namespaces/home/pods", "…"), server.wrote())
		})
	}
	other := errors.New("other")
	pods, _ := exchanging(t, respond(podReply))
	_, _, err := dynamic.As[guest](pods).Upsert(t.Context(), "web", func(*guest) error { return other }, nil)
	require.ErrorIs(t, err, other)
	pods, _ = exchanging(t, respond(podReply))
	_, _, err = dynamic.As[guest](pods).Upsert(t.Context(), "web", func(g *guest) error { g.Name = "db"; return nil }, nil)
	require.ErrorContains(t, err, `the change sets metadata.name to "db", but it must stay "web"`)
	pods, _ = exchanging(t, respond(podReply), respond(podReply))
	_, did, err := dynamic.As[unstructured.Object](pods).Upsert(t.Context(), "web", func(obj *unstructured.Object) error {
		return unstructured.Set(obj, "b", "metadata", "labels", "a")
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertUpdated, did)
}

// roster has a list and a field that may be null.
type roster struct {
	metav1.ObjectMeta `json:"metadata"`
	Host              *string `json:"host"`
	Seats             int     `json:"seats"`
	Guests            []struct {
		Name string `json:"name"`
	} `json:"guests"`
	Menu *struct {
		Courses int `json:"courses"`
	} `json:"menu"`
	Place struct {
		Row int `json:"row,omitempty"`
	} `json:"place,omitzero"`
}

func TestHandle_UpsertKeepsUnchangedValues(t *testing.T) {
	const put, post = `PUT …/web application/json `, `POST … application/json `
	for name, tc := range map[string]struct {
		stored response
		row    int
		wrote  string
	}{
		"a list whose items have other fields": {
			respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"},"guests":[{"name":"a","table":1}]}`), 0,
			put + `{"apiVersion":"v1","guests":[{"name":"a","table":1}],"kind":"Pod","metadata":{"name":"web","resourceVersion":"7"},"seats":8}`,
		},
		"an object that is set to null": {
			respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"},"menu":{"courses":3,"wine":"red"}}`), 0,
			put + `{"apiVersion":"v1","kind":"Pod","menu":null,"metadata":{"name":"web","resourceVersion":"7"},"seats":8}`,
		},
		"an object without known fields": {
			respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"},"seats":8,"place":{"floor":2}}`), 3,
			put + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","resourceVersion":"7"},"place":{"floor":2,"row":3},"seats":8}`,
		},
		"null in a new object": {
			missing, 3,
			post + `{"apiVersion":"v1","guests":null,"host":null,"kind":"Pod","menu":null,"metadata":{"name":"web","namespace":"home"},"place":{"row":3},"seats":8}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods, server := exchanging(t, tc.stored, respond(podReply))
			_, _, err := dynamic.As[roster](pods).Upsert(t.Context(), "web", func(r *roster) error {
				r.Seats = 8
				r.Menu = nil
				r.Place.Row = tc.row
				return nil
			}, nil)
			require.NoError(t, err)
			assert.Equal(t, tc.wrote, server.wrote())
		})
	}
}

func TestHandle_UpsertErrors(t *testing.T) {
	pods, server := exchanging(t, respond(podReply))
	_, _, err := dynamic.As[unstructured.Object](pods).Upsert(t.Context(), "web", func(obj *unstructured.Object) error {
		obj.Object["spec"] = func() {}
		return nil
	}, nil)
	require.ErrorContains(t, err, `upsert pods "web": `)
	assert.Len(t, server.seen(), 1)

	pods, _ = exchanging(t, respond(podReply), respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"home"},"spec":{"priority":"high"}}`))
	_, _, err = dynamic.As[guest](pods).Upsert(t.Context(), "web", func(g *guest) error { g.Spec.Priority = 8; return nil }, nil)
	require.ErrorContains(t, err, `decode pods "home/web" as dynamic_test.guest: .spec.priority: is string, not int32`)
}
