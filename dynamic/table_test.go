package dynamic_test

import (
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	columns  = `[{"name":"Name","type":"string","format":"name","description":"d","priority":0},{"name":"Ready","type":"integer","format":"","description":"","priority":1}]`
	tableOne = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"more","remainingItemCount":4},"columnDefinitions":` + columns + `,
		"rows":[{"cells":["web",3,1.5,true,null,["a",{"b":7}]],"conditions":[{"type":"Completed","status":"True","reason":"r","message":"m"}],"object":` + partial + `},{"cells":["db",4]}]}`
)

func TestATableIsOneRequest(t *testing.T) {
	for want, call := range map[string]func(*dynamic.Resource) error{
		"GET …/web?includeObject=Object&resourceVersion=0": func(pods *dynamic.Resource) error {
			_, err := pods.Tables(metav1.IncludeObject).Get(t.Context(), "web", &metav1.GetOptions{ResourceVersion: "0"})
			return err
		},
		"GET …/web": func(pods *dynamic.Resource) error {
			_, err := pods.Metadata().Tables("").Get(t.Context(), "web", nil)
			return err
		},
		"GET …?continue=more&includeObject=None&limit=2": func(pods *dynamic.Resource) error {
			_, err := pods.Tables(metav1.IncludeNone).List(t.Context(), &metav1.ListOptions{Limit: 2, Continue: "more"})
			return err
		},
		"GET …?fieldSelector=metadata.name%3Dweb&includeObject=Metadata&watch=true": func(pods *dynamic.Resource) error {
			for _, err := range pods.Tables(metav1.IncludeMetadata).Watch(t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name=web"}) {
				require.ErrorContains(t, err, "watch event's type is null")
			}
			return nil
		},
	} {
		pods, server := exchanging(t, says(tableOne))
		require.NoError(t, call(pods), want)
		assert.Equal(t, []string{want}, server.seen())
		assert.Equal(t, []string{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, server.accepted())
	}
}

func TestATableKeepsIntegersAndItsObjects(t *testing.T) {
	pods, _ := exchanging(t, says(tableOne))
	table, err := pods.Tables("").List(t.Context(), nil)
	require.NoError(t, err)
	object, err := unstructured.Decode([]byte(metadataOnly))
	require.NoError(t, err)
	four := int64(4)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &four}, table.ListMeta)
	assert.Equal(t, []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "d"}, {Name: "Ready", Type: "integer", Priority: 1},
	}, table.ColumnDefinitions)
	require.Len(t, table.Rows, 2)
	assert.Equal(t, []any{"web", int64(3), 1.5, true, nil, []any{"a", map[string]any{"b": int64(7)}}}, table.Rows[0].Cells)
	assert.Equal(t, object, table.Rows[0].Object.Object)
	assert.Equal(t, []metav1.TableRowCondition{{Type: "Completed", Status: "True", Reason: "r", Message: "m"}}, table.Rows[0].Conditions)
	assert.Nil(t, table.Rows[1].Object.Object)
}

func TestEveryEventOfATableHasTheColumns(t *testing.T) {
	const row = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"rows":[{"cells":["web",4]}]}`
	pods, _ := exchanging(t, says(`{"type":"ADDED","object":`+tableOne+`}{"type":"MODIFIED","object":`+row+`}`), says(`{"type":"DELETED","object":`+row+`}`))
	tables := pods.Tables("").Watch(t.Context(), nil)
	var types []watch.EventType
	for event, err := range tables {
		require.NoError(t, err)
		types = append(types, event.Type)
		assert.Len(t, event.Object.ColumnDefinitions, 2)
	}
	assert.Equal(t, []watch.EventType{watch.Added, watch.Modified}, types)
	for event, err := range tables {
		require.NoError(t, err)
		assert.Empty(t, event.Object.ColumnDefinitions, "a watch of its own knows nothing of the one before")
	}
}

func TestAnAnswerThatIsNoTableIsAnError(t *testing.T) {
	for body, want := range map[string]string{
		listReply:                              `list pods: GET http://127.0.0.1`,
		`{"kind":"PodList","apiVersion":"v1"}`: `the server answered v1 PodList and no table: it cannot print this resource`,
		`<html>`:                               `list pods: GET http://127.0.0.1`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":7}`:                                            `read the table that the server answered`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[1]}`:                                `read row 0 of the table that the server answered: it is no object`,
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[{"cells":["a"],"conditions":[7]}]}`: `read row 0 of the table`,
	} {
		pods, _ := exchanging(t, says(body))
		_, err := pods.Tables("").List(t.Context(), nil)
		require.ErrorContains(t, err, want)
	}
	pods, _ := exchanging(t, says(`{"type":"ADDED","object":`+podReply+`}`), says(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`))
	err := drain(pods.Tables("").Watch(t.Context(), nil))
	require.ErrorContains(t, err, "the server answered v1 Pod and no table")
	err = drain(pods.Tables("").Watch(t.Context(), nil))
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestATableThatCannotBeIsRefused(t *testing.T) {
	pods, server := exchanging(t)
	_, err := pods.Tables("").Get(t.Context(), "", nil)
	require.ErrorContains(t, err, "get pods: the name is empty")
	_, err = pods.Sub("status").Tables("").List(t.Context(), nil)
	require.ErrorContains(t, err, "leave Sub out")
	assert.Empty(t, server.seen())
}
