package dynamic_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

var (
	conflict = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("changed"))

	missing       = refuses(http.StatusNotFound, "NotFound")
	conflicts     = refuses(http.StatusConflict, "Conflict")
	alreadyExists = refuses(http.StatusConflict, "AlreadyExists")
	forbidden     = refuses(http.StatusForbidden, "Forbidden")
)

// labelledPod returns a stored pod with one label.
func labelledPod(value string) response {
	return respond(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"home","uid":"u","resourceVersion":"7","labels":{"a":"` + value + `"}},"spec":{"priority":7}}`)
}

// labelled sets the one label to "new" and a number to its own value in another Go type.
func labelled(obj *unstructured.Object) error {
	obj.SetLabels(map[string]string{"a": "new"})
	if spec, ok := obj.Object["spec"].(map[string]any); ok {
		spec["priority"] = 7
	}
	return nil
}

func TestUpsert_Requests(t *testing.T) {
	const options = "?dryRun=All&fieldManager=me&fieldValidation=Strict"
	const get, put, post = "GET …/web", "PUT …/web" + options, "POST …" + options
	opts := &metav1.UpdateOptions{FieldManager: "me", DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	for name, tc := range map[string]struct {
		responses []response
		requests  []string
		outcome   dynamic.UpsertResult
		fails     func(error) bool
	}{
		"missing":                    {[]response{missing, labelledPod("new")}, []string{get, post}, dynamic.UpsertCreated, nil},
		"different":                  {[]response{labelledPod("old"), labelledPod("new")}, []string{get, put}, dynamic.UpsertUpdated, nil},
		"equal":                      {[]response{labelledPod("new")}, []string{get}, dynamic.UpsertUnchanged, nil},
		"written in between":         {[]response{labelledPod("old"), conflicts, labelledPod("older"), labelledPod("new")}, []string{get, put, get, put}, dynamic.UpsertUpdated, nil},
		"made equal in between":      {[]response{labelledPod("old"), conflicts, labelledPod("new")}, []string{get, put, get}, dynamic.UpsertUnchanged, nil},
		"created in between":         {[]response{missing, alreadyExists, labelledPod("old"), labelledPod("new")}, []string{get, post, get, put}, dynamic.UpsertUpdated, nil},
		"deleted in between":         {[]response{labelledPod("old"), missing, missing, labelledPod("new")}, []string{get, put, get, post}, dynamic.UpsertCreated, nil},
		"get forbidden":              {[]response{forbidden}, []string{get}, "", apierrors.IsForbidden},
		"update forbidden":           {[]response{labelledPod("old"), forbidden}, []string{get, put}, "", apierrors.IsForbidden},
		"create forbidden":           {[]response{missing, forbidden}, []string{get, post}, "", apierrors.IsForbidden},
		"namespace missing":          {[]response{missing, missing}, []string{get, post}, "", apierrors.IsNotFound},
		"quota conflict":             {[]response{missing, conflicts, missing, labelledPod("new")}, []string{get, post, get, post}, dynamic.UpsertCreated, nil},
		"invalid response to get":    {[]response{respond("<html>")}, []string{get}, "", func(err error) bool { return err != nil }},
		"invalid response to update": {[]response{labelledPod("old"), respond("<html>")}, []string{get, put}, "", func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			pods, server := exchanging(t, tc.responses...)
			obj, outcome, err := pods.Upsert(t.Context(), "web", labelled, opts)
			assert.Equal(t, tc.requests, server.seen())
			assert.Equal(t, tc.outcome, outcome)
			if tc.fails != nil {
				assert.True(t, tc.fails(err), "%v", err)
				require.ErrorContains(t, err, `upsert pods "web": `)
				assert.Nil(t, obj)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"a": "new"}, obj.GetLabels())
			assert.Equal(t, map[string]any{"priority": int64(7)}, obj.Object["spec"])
		})
	}
}

func TestUpsert_ArgumentOfChange(t *testing.T) {
	var got []map[string]any
	pods, _ := exchanging(t, labelledPod("old"), conflicts, missing, respond(podReply))
	_, _, err := pods.Upsert(t.Context(), "web", func(obj *unstructured.Object) error {
		got = append(got, obj.DeepCopy().Object)
		obj.SetLabels(map[string]string{"seen": "true"})
		return nil
	}, nil)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, map[string]any{"a": "old"}, got[0]["metadata"].(map[string]any)["labels"])
	assert.Equal(t, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "home"}}, got[1])
}

func TestUpsert_RejectsChangedIdentity(t *testing.T) {
	for want, change := range map[string]func(*unstructured.Object){
		`the change sets kind to "Node", but it must stay "Pod"`:        func(obj *unstructured.Object) { obj.SetKind("Node") },
		`the change sets apiVersion to "v2", but it must stay "v1"`:     func(obj *unstructured.Object) { obj.SetAPIVersion("v2") },
		`the change sets metadata.name to "db", but it must stay "web"`: func(obj *unstructured.Object) { obj.SetName("db") },
		`the change sets metadata.namespace to "shop", but it must stay "home"`: func(obj *unstructured.Object) {
			obj.SetNamespace("shop")
		},
		`the change sets metadata.uid to "", but it must stay "u"`:             func(obj *unstructured.Object) { obj.SetUID("") },
		`the change sets metadata.resourceVersion to "", but it must stay "7"`: func(obj *unstructured.Object) { obj.SetResourceVersion("") },
		`the change sets apiVersion to "", but it must stay "v1"`:              func(obj *unstructured.Object) { obj.Object = nil },
	} {
		pods, server := exchanging(t, labelledPod("old"))
		_, _, err := pods.Upsert(t.Context(), "web", func(obj *unstructured.Object) error { change(obj); return nil }, nil)
		var refused *dynamic.InvalidRequestError
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, &refused, want)
		assert.Equal(t, []string{"GET …/web"}, server.seen())
	}
}

func TestUpsert_ErrorOfChange(t *testing.T) {
	pods, server := exchanging(t, labelledPod("old"))
	_, _, err := pods.Upsert(t.Context(), "web", func(*unstructured.Object) error { return conflict }, nil)
	require.ErrorIs(t, err, conflict)
	assert.Equal(t, []string{"GET …/web"}, server.seen())

	pods, server = exchanging(t, labelledPod("old"))
	_, _, err = pods.Upsert(t.Context(), "web", func(obj *unstructured.Object) error { obj.Object["spec"] = func() {}; return nil }, nil)
	require.ErrorContains(t, err, `upsert pods "web": `)
	assert.Equal(t, []string{"GET …/web"}, server.seen())

	_, _, err = pods.Upsert(t.Context(), "web", nil, nil)
	require.ErrorContains(t, err, "the change to make is nil")
	_, _, err = pods.Metadata().Upsert(t.Context(), "web", labelled, nil)
	require.ErrorContains(t, err, "a change needs the whole object (remove Metadata or Tables)")
	_, _, err = pods.AllNamespaces().Upsert(t.Context(), "web", labelled, nil)
	require.ErrorContains(t, err, "one object needs a namespace")
}

func TestUpsert_SubresourceOfMissingObject(t *testing.T) {
	pods, server := exchanging(t, labelledPod("old"), labelledPod("new"), missing)
	_, outcome, err := pods.Subresource("status").Upsert(t.Context(), "web", labelled, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertUpdated, outcome)
	_, _, err = pods.Subresource("status").Upsert(t.Context(), "web", labelled, nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Equal(t, []string{"GET …/web/status", "PUT …/web/status", "GET …/web/status"}, server.seen())
}

func TestRetryOnConflict_Retries(t *testing.T) {
	other := errors.New("other")
	for name, tc := range map[string]struct {
		fails []error
		want  error
	}{
		"none": {nil, nil}, "once": {[]error{conflict}, nil}, "wrapped": {[]error{errors.Join(errors.New("save"), conflict)}, nil},
		"another error": {[]error{conflict, other, conflict}, other},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := dynamic.RetryOnConflict(t.Context(), func(ctx context.Context) error {
				assert.Equal(t, t.Context(), ctx)
				calls++
				if calls > len(tc.fails) {
					return nil
				}
				return tc.fails[calls-1]
			})
			assert.Equal(t, tc.want, err)
			assert.Equal(t, min(len(tc.fails)+1, 2), calls)
		})
	}
}

func TestRetryOnConflict_NotForApplyConflicts(t *testing.T) {
	pods, server := exchanging(t, response{status: http.StatusConflict, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,
		"details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"other\" using v1","field":".spec.priority"}]}}`})
	err := dynamic.RetryOnConflict(t.Context(), func(ctx context.Context) error {
		_, err := pods.Apply(ctx, object("Pod", "web"), &metav1.ApplyOptions{FieldManager: "me"})
		return err
	})
	var owned *dynamic.ApplyConflictError
	require.ErrorAs(t, err, &owned)
	assert.Len(t, server.seen(), 1)
}

func TestRetryOnConflict_MaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := dynamic.RetryOnConflict(t.Context(), func(context.Context) error { calls++; return conflict })
		assert.True(t, apierrors.IsConflict(err))
		require.ErrorContains(t, err, "10 attempts: ")
		assert.Equal(t, 10, calls)

		ctx, cancel := context.WithCancelCause(t.Context())
		err = dynamic.RetryOnConflict(ctx, func(context.Context) error { cancel(errors.New("enough")); return conflict })
		assert.True(t, apierrors.IsConflict(err))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "enough")
	})
}
