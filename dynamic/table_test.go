package dynamic_test

import (
	"fmt"
	"io"
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

const (
	columns  = `[{"name":"Name","type":"string","format":"name","description":"d","priority":0},{"name":"Ready","type":"integer","format":"","description":"","priority":1}]`
	tableOne = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"more","remainingItemCount":4},"columnDefinitions":` + columns + `,
		"rows":[{"cells":["web",3,1.5,true,null,["a",{"b":7}]],"conditions":[{"type":"Completed","status":"True","reason":"r","message":"m"}],"object":` + partial + `},{"cells":["db",4]}]}`
)

func TestTables_Requests(t *testing.T) {
	for want, call := range map[string]func(*dynamic.Resource) error{
		"GET …/web?includeObject=Object&resourceVersion=0": func(pods *dynamic.Resource) error {
			_, err := pods.Tables(metav1.IncludeObject).Get(t.Context(), "web", &metav1.GetOptions{ResourceVersion: "0"})
			require.ErrorContains(t, err, "has 2 rows")
			return nil
		},
		"GET …/web": func(pods *dynamic.Resource) error {
			_, err := pods.Metadata().Tables("").Get(t.Context(), "web", nil)
			require.ErrorContains(t, err, "has 2 rows")
			return nil
		},
		"GET …?continue=more&includeObject=None&limit=2": func(pods *dynamic.Resource) error {
			_, err := pods.Tables(metav1.IncludeNone).ListPage(t.Context(), &metav1.ListOptions{Limit: 2, Continue: "more"})
			return err
		},
		"GET …?fieldSelector=metadata.name%3Dweb&includeObject=Metadata&watch=true": func(pods *dynamic.Resource) error {
			for _, err := range pods.Tables(metav1.IncludeMetadata).Watch(t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name=web"}) {
				require.ErrorContains(t, err, "watch event's type is null")
			}
			return nil
		},
	} {
		pods, server := exchanging(t, respond(tableOne))
		require.NoError(t, call(pods), want)
		assert.Equal(t, []string{want}, server.seen())
		assert.Equal(t, []string{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, server.accepted())
	}
}

func TestTables_KeepIntegersAndObjects(t *testing.T) {
	pods, _ := exchanging(t, respond(tableOne))
	page, err := pods.Tables("").ListPage(t.Context(), nil)
	require.NoError(t, err)
	object, err := unstructured.Decode([]byte(metadataOnly))
	require.NoError(t, err)
	four := int64(4)
	assert.Equal(t, metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, page.TypeMeta)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &four}, page.ListMeta)
	require.Len(t, page.Items, 2)
	for _, row := range page.Items {
		assert.Equal(t, []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "d"}, {Name: "Ready", Type: "integer", Priority: 1},
		}, row.Columns)
		assert.Equal(t, "9", row.ResourceVersion)
	}
	assert.Equal(t, []any{"web", int64(3), 1.5, true, nil, []any{"a", map[string]any{"b": int64(7)}}}, page.Items[0].Cells)
	assert.Equal(t, object, page.Items[0].Object)
	assert.Equal(t, []metav1.TableRowCondition{{Type: "Completed", Status: "True", Reason: "r", Message: "m"}}, page.Items[0].Conditions)
	assert.Nil(t, page.Items[1].Object)
}

const tableTwo = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":` + columns + `,"rows":[{"cells":["x",1]}]}`

func TestTables_ListAllPages(t *testing.T) {
	pods, server := exchanging(t, respond(tableOne), respond(tableTwo))
	var pages []metav1.ListMeta
	var names []any
	for row, err := range pods.WithPageOptions(&dynamic.PageOptions{OnPage: func(meta metav1.ListMeta) { pages = append(pages, meta) }}).
		Tables(metav1.IncludeMetadata).List(t.Context(), &metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "0"}) {
		require.NoError(t, err)
		require.Len(t, row.Columns, 2)
		if names = append(names, row.Cells[0]); len(names) == 1 {
			assert.Equal(t, "web", row.Object.GetName())
			assert.Equal(t, "Pod", row.Object.GetKind())
			assert.Equal(t, metav1.RowCompleted, row.Conditions[0].Type)
		} else {
			assert.Nil(t, row.Object)
		}
	}
	assert.Equal(t, []any{"web", "db", "x"}, names)
	assert.Equal(t, []string{
		"GET …?includeObject=Metadata&labelSelector=a%3Db&limit=500&resourceVersion=0",
		"GET …?continue=more&includeObject=Metadata&labelSelector=a%3Db&limit=500",
	}, server.seen())
	require.Len(t, pages, 2)
	assert.Equal(t, "more", pages[0].Continue)
}

func TestTables_ListEndsEarly(t *testing.T) {
	pods, server := exchanging(t, respond(tableOne), respond(tableOne))
	for _, err := range pods.Tables("").List(t.Context(), &metav1.ListOptions{Limit: 2}) {
		require.NoError(t, err)
		break
	}
	assert.Equal(t, []string{"GET …?limit=2"}, server.seen())
}

func TestTables_ListExpired(t *testing.T) {
	pods, _ := exchanging(t, respond(tableOne), refuses(410, "Expired"))
	rows := 0
	var last error
	for row, err := range pods.Tables("").List(t.Context(), nil) {
		if last = err; row != nil {
			rows++
		}
	}
	assert.True(t, apierrors.IsResourceExpired(last), "%v", last)
	assert.Equal(t, 2, rows)

	pods, server := exchanging(t, respond(tableOne), refuses(410, "Expired"), respond(tableTwo))
	restart := &dynamic.PageOptions{OnExpired: func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryRestart }}
	require.NoError(t, drain(pods.WithPageOptions(restart).Tables("").List(t.Context(), nil)))
	assert.Equal(t, []string{"GET …?limit=500", "GET …?continue=more&limit=500", "GET …?limit=500"}, server.seen())
}

func TestTables_WatchRepeatsColumns(t *testing.T) {
	const row = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"rows":[{"cells":["web",4]}]}`
	const none = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"12"},"columnDefinitions":null,"rows":[]}`
	pods, _ := exchanging(t, respond(`{"type":"ADDED","object":`+tableOne+`}{"type":"MODIFIED","object":`+row+`}{"type":"BOOKMARK","object":`+none+`}`), respond(`{"type":"DELETED","object":`+row+`}`))
	rows := pods.Tables("").Watch(t.Context(), nil)
	var seen []string
	for event, err := range rows {
		require.NoError(t, err)
		seen = append(seen, fmt.Sprint(event.Type, " ", len(event.Object.Cells), " ", event.Object.ResourceVersion))
		assert.Len(t, event.Object.Columns, 2)
	}
	assert.Equal(t, []string{"ADDED 6 9", "ADDED 2 9", "MODIFIED 2 ", "BOOKMARK 0 12"}, seen, "an event for each row")
	for event, err := range rows {
		require.NoError(t, err)
		assert.Empty(t, event.Object.Columns, "a watch of its own knows nothing of the one before")
	}
}

func TestTables_OpenWatch(t *testing.T) {
	pods, server := exchanging(t, respond(`{"type":"ADDED","object":`+tableOne+`}`), refuses(403, "Forbidden"))
	stream, err := pods.Tables("").OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	event, err := stream.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Added, event.Type)
	assert.Len(t, event.Object.Columns, 2)
	_, err = stream.Next()
	require.NoError(t, err, "the second row")
	_, err = stream.Next()
	assert.Equal(t, io.EOF, err)
	stream.Close()
	_, err = pods.Tables("").OpenWatch(t.Context(), nil)
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Equal(t, []string{"GET …?watch=true", "GET …?watch=true"}, server.seen())
}

func TestTables_InvalidResponse(t *testing.T) {
	for body, want := range map[string]string{
		listReply:                              `list pods: GET http://server.test`,
		`{"kind":"PodList","apiVersion":"v1"}`: `the response is a v1 PodList, not a table: the server cannot print this resource`,
		`<html>`:                               `list pods: GET http://server.test`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":7}`:                                            `decode the table`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[1]}`:                                `decode row 0 of the table: not a JSON object`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[{"cells":["a"],"conditions":[7]}]}`: `decode row 0 of the table`,
	} {
		pods, _ := exchanging(t, respond(body))
		_, err := pods.Tables("").ListPage(t.Context(), nil)
		require.ErrorContains(t, err, want)
	}
	pods, _ := exchanging(t, respond(`{"type":"ADDED","object":`+podReply+`}`), respond(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`))
	err := drain(pods.Tables("").Watch(t.Context(), nil))
	require.ErrorContains(t, err, "the response is a v1 Pod, not a table")
	err = drain(pods.Tables("").Watch(t.Context(), nil))
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestTables_RejectInvalidCalls(t *testing.T) {
	pods, server := exchanging(t)
	_, err := pods.Tables("").Get(t.Context(), "", nil)
	require.ErrorContains(t, err, "get pods: the name is empty")
	_, err = pods.Subresource("status").Tables("").ListPage(t.Context(), nil)
	require.ErrorContains(t, err, "remove Subresource")
	rows := pods.Tables("")
	for verb, call := range map[string]func() error{
		"create": func() error { _, err := rows.Create(t.Context(), &dynamic.TableRow{}, nil); return err },
		"update": func() error { _, err := rows.Update(t.Context(), &dynamic.TableRow{}, nil); return err },
		"patch": func() error {
			_, err := rows.Apply(t.Context(), &dynamic.TableRow{}, &metav1.ApplyOptions{FieldManager: "me"})
			return err
		},
		"delete":           func() error { _, err := rows.Delete(t.Context(), "web", nil); return err },
		"deletecollection": func() error { _, err := rows.DeleteCollection(t.Context(), nil, nil); return err },
		"watch":            func() error { _, err := rows.Wait(t.Context(), "web", dynamic.Exists()); return err },
	} {
		refused := &dynamic.InvalidRequestError{}
		require.ErrorAs(t, call(), &refused, verb)
		assert.Equal(t, verb, refused.Verb)
		assert.Contains(t, refused.Reason, "(use the handle without Tables)")
	}
	_, err = rows.Patch(t.Context(), "web", types.MergePatchType, []byte(`{}`), nil)
	require.ErrorContains(t, err, "without Tables")
	_, _, err = rows.Upsert(t.Context(), "web", func(*dynamic.TableRow) error { return nil }, nil)
	require.ErrorContains(t, err, "remove Metadata or Tables")
	assert.Empty(t, server.seen())
}

func TestTables_GetNeedsOneRow(t *testing.T) {
	pods, _ := exchanging(t, respond(tableTwo), respond(tableOne))
	row, err := pods.Tables("").Get(t.Context(), "x", nil)
	require.NoError(t, err)
	assert.Equal(t, []any{"x", int64(1)}, row.Cells)
	assert.Len(t, row.Columns, 2)
	_, err = pods.Tables("").Get(t.Context(), "web", nil)
	require.ErrorContains(t, err, "the table of one object has 2 rows")
}

// TestAs_FromAnyHandle changes the representation to that of T.
func TestAs_FromAnyHandle(t *testing.T) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	pods, server := exchanging(t, respond(tableTwo), respond(podReply), respond(podReply), respond(podReply))
	row, err := dynamic.As[dynamic.TableRow](dynamic.As[guest](pods)).Get(t.Context(), "x", nil)
	require.NoError(t, err)
	assert.Equal(t, "x", row.Cells[0])
	one, err := dynamic.As[guest](pods.Tables(metav1.IncludeNone)).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, "web", one.Name)
	obj, err := dynamic.As[unstructured.Object](dynamic.As[unstructured.Lazy](pods)).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, "web", obj.GetName())
	meta, err := dynamic.As[unstructured.Object](dynamic.As[guest](pods).Metadata()).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, "web", meta.GetName())
	accepted := server.accepted()
	assert.Equal(t, table, accepted[0])
	assert.NotContains(t, accepted[1]+accepted[2], "as=")
	assert.Contains(t, accepted[3], "as=PartialObjectMetadata")
}
