package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// podPage returns a page of pods p0, p1 and so on, in namespaces n0 to n2.
func podPage(first, count int, continueToken string) response {
	var items []string
	for i := first; i < first+count; i++ {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"n%d"}}`, i, i%3))
	}
	return respond(fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`,
		continueToken, strings.Join(items, ",")))
}

func TestResource_ForEachBoundsWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		opts *dynamic.ForEachOptions
		want int32
	}{
		"default": {nil, 10},
		"one":     {&dynamic.ForEachOptions{Workers: 1}, 1},
		"four":    {&dynamic.ForEachOptions{Workers: 4}, 4},
		"more":    {&dynamic.ForEachOptions{Workers: 100}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, podPage(0, 30, "more"), podPage(30, 20, ""))
				var running, peak atomic.Int32
				var seen sync.Map
				list := &metav1.ListOptions{LabelSelector: "app=web"}
				err := pods.AllNamespaces().ForEach(t.Context(), list, tc.opts, func(_ context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
					now := running.Add(1)
					defer running.Add(-1)
					for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
					}
					time.Sleep(time.Second)
					path, err := in.Path(obj.GetName())
					_, again := seen.LoadOrStore(path, nil)
					assert.False(t, again, "%s again", path)
					return err
				})
				require.NoError(t, err)
				assert.Equal(t, tc.want, peak.Load())
				for i := range 50 {
					_, ok := seen.Load(fmt.Sprintf("/api/v1/namespaces/n%d/pods/p%d", i%3, i))
					assert.True(t, ok, "p%d", i)
				}
				assert.Equal(t, []string{
					"GET /api/v1/pods?labelSelector=app%3Dweb&limit=500", "GET /api/v1/pods?continue=more&labelSelector=app%3Dweb&limit=500",
				}, server.seen())
				assert.Equal(t, metav1.ListOptions{LabelSelector: "app=web"}, *list, "options are not changed")
			})
		})
	}
}

func TestResource_ForEachJoinsErrors(t *testing.T) {
	pods, _ := exchanging(t, podPage(0, 9, ""))
	cause := apierrors.NewConflict(pods.APIResource().GVR.GroupResource(), "p4", errors.New("changed"))
	var progress []dynamic.ForEachProgress
	opts := &dynamic.ForEachOptions{OnProgress: func(p dynamic.ForEachProgress) { progress = append(progress, p) }}
	err := pods.AllNamespaces().ForEach(t.Context(), nil, opts, func(_ context.Context, _ *dynamic.Resource, obj *unstructured.Object) error {
		switch obj.GetName() {
		case "p4":
			return cause
		case "p5":
			return errors.New("five")
		}
		return nil
	})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	texts := map[types.NamespacedName]string{}
	for _, one := range joined.Unwrap() {
		var object *dynamic.ObjectError
		require.ErrorAs(t, one, &object)
		texts[object.Key] = one.Error()
	}
	assert.Equal(t, map[types.NamespacedName]string{
		{Namespace: "n1", Name: "p4"}: `pods "n1/p4": ` + cause.Error(),
		{Namespace: "n2", Name: "p5"}: `pods "n2/p5": five`,
	}, texts)

	require.Len(t, progress, 9)
	failed := 0
	for i, p := range progress {
		if p.Err != nil {
			failed++
			assert.Contains(t, texts, p.Key)
		}
		assert.Equal(t, dynamic.ForEachProgress{Key: p.Key, Err: p.Err, Done: i + 1, Failed: failed, Total: 9}, p)
	}
	assert.Equal(t, 2, failed)
}

func TestResource_ForEachTotalHasRemaining(t *testing.T) {
	first := respond(`{"kind":"PodList","metadata":{"continue":"c","remainingItemCount":2},"items":[{"metadata":{"name":"a"}}]}`)
	pods, _ := exchanging(t, first, podPage(1, 2, ""))
	var totals []int
	opts := &dynamic.ForEachOptions{Workers: 1, OnProgress: func(p dynamic.ForEachProgress) { totals = append(totals, p.Total) }}
	require.NoError(t, pods.ForEach(t.Context(), nil, opts, func(_ context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
		_, err := in.Path(obj.GetName())
		return err
	}))
	assert.Equal(t, []int{3, 3, 3}, totals)
}

func TestResource_ForEachBoundsErrors(t *testing.T) {
	pods, _ := exchanging(t, podPage(0, 700, "more"), podPage(700, 700, ""))
	reported := 0
	opts := &dynamic.ForEachOptions{OnProgress: func(p dynamic.ForEachProgress) {
		if p.Err != nil {
			reported++
		}
	}}
	err := pods.ForEach(t.Context(), nil, opts, func(context.Context, *dynamic.Resource, *unstructured.Object) error { return errors.New("no") })
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 1001)
	require.ErrorContains(t, err, "process pods: 400 more objects failed")
	assert.Equal(t, 1400, reported)
}

func TestResource_ForEachListErrors(t *testing.T) {
	none := func(context.Context, *dynamic.Resource, *unstructured.Object) error { return nil }
	for name, tc := range map[string]struct {
		responses []response
		is        func(error) bool
		requests  int
	}{
		"the first page":            {[]response{refuses(403, "Forbidden")}, apierrors.IsForbidden, 1},
		"a later page":              {[]response{podPage(0, 2, "more"), refuses(403, "Forbidden")}, apierrors.IsForbidden, 2},
		"expired without the rest":  {[]response{podPage(0, 2, "more"), refuses(410, "Expired")}, apierrors.IsResourceExpired, 2},
		"a continue token is false": {[]response{podPage(0, 2, "more"), refuses(400, "BadRequest")}, apierrors.IsBadRequest, 2},
	} {
		t.Run(name, func(t *testing.T) {
			pods, server := exchanging(t, tc.responses...)
			err := pods.ForEach(t.Context(), nil, nil, none)
			assert.True(t, tc.is(err), "%v", err)
			assert.Len(t, server.seen(), tc.requests)
		})
	}
	pods, server := exchanging(t)
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, pods.Subresource("status").ForEach(t.Context(), nil, nil, none), &invalid)
	require.ErrorAs(t, pods.ForEach(t.Context(), &metav1.ListOptions{Watch: true}, nil, none), &invalid)
	assert.Empty(t, server.seen())
}

func TestResource_ForEachListErrorKeepsObjectErrors(t *testing.T) {
	pods, _ := exchanging(t, podPage(0, 2, "more"), refuses(403, "Forbidden"))
	cause := errors.New("no")
	err := pods.ForEach(t.Context(), nil, nil, func(context.Context, *dynamic.Resource, *unstructured.Object) error { return cause })
	require.ErrorIs(t, err, cause)
	assert.Equal(t, 3, strings.Count(err.Error(), "\n")+1)
	assert.ErrorContains(t, err, "as scripted")
}

func TestResource_ForEachExpiredList(t *testing.T) {
	expired := response{status: 410, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"metadata":{"continue":"rest"}}`}
	list := &metav1.ListOptions{Limit: 2, ResourceVersion: "5", ResourceVersionMatch: "Exact"}
	first := []string{"GET …?limit=2&resourceVersion=5&resourceVersionMatch=Exact", "GET …?continue=more&limit=2"}
	for name, tc := range map[string]struct {
		onExpired func(error) dynamic.ExpiryPolicy
		want      []string // requests after the first
		isExpired bool
	}{
		"continues by default": {nil, []string{"GET …?continue=rest&limit=2"}, false},
		"restarts":             {func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryRestart }, []string{"GET …?limit=2"}, false},
		"fails":                {func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryFail }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			pods, server := exchanging(t, podPage(0, 2, "more"), expired, podPage(2, 2, ""))
			var tokens []string
			pods = pods.WithPageOptions(&dynamic.PageOptions{OnExpired: tc.onExpired, OnPage: func(page metav1.ListMeta) { tokens = append(tokens, page.Continue) }})
			var count atomic.Int32
			err := pods.ForEach(t.Context(), list, nil, func(context.Context, *dynamic.Resource, *unstructured.Object) error {
				count.Add(1)
				return nil
			})
			assert.Equal(t, tc.isExpired, apierrors.IsResourceExpired(err), "%v", err)
			assert.Equal(t, append(first, tc.want...), server.seen())
			if tc.isExpired {
				assert.EqualValues(t, 2, count.Load())
				assert.Equal(t, []string{"more"}, tokens)
				return
			}
			require.NoError(t, err)
			assert.EqualValues(t, 4, count.Load())
			assert.Equal(t, []string{"more", ""}, tokens)
		})
	}
}

func TestResource_ForEachEndsWithContext(t *testing.T) {
	silent := func(context.Context) error { return nil }
	for name, tc := range map[string]struct {
		workers   int
		responses []response
		result    func(context.Context) error // of a call that the context ends
		began     int32
	}{
		"while objects wait":     {2, []response{podPage(0, 4, "more")}, silent, 2},
		"while a page is listed": {9, []response{podPage(0, 4, "more"), {mute: true}}, silent, 4},
		"after the last object":  {9, []response{podPage(0, 4, "")}, context.Cause, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.responses...)
				ctx, cancel := context.WithCancelCause(t.Context())
				cause := fmt.Errorf("enough: %w", context.Canceled)
				time.AfterFunc(time.Second, func() { cancel(cause) })
				var began, returned atomic.Int32
				err := pods.ForEach(ctx, nil, &dynamic.ForEachOptions{Workers: tc.workers}, func(ctx context.Context, _ *dynamic.Resource, _ *unstructured.Object) error {
					began.Add(1)
					<-ctx.Done()
					time.Sleep(time.Second)
					returned.Add(1)
					return tc.result(ctx)
				})
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause)
				assert.Equal(t, tc.began, began.Load())
				assert.Equal(t, tc.began, returned.Load(), "no call is left")
				assert.Len(t, server.seen(), len(tc.responses))
			})
		})
	}
}

// TestResource_ForEachHoldsOnePage reads a page when the one before it has been taken, and not earlier.
func TestResource_ForEachHoldsOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responses := []response{}
		for i := range 20 {
			responses = append(responses, podPage(i*5, 5, "more"))
		}
		pods, server := exchanging(t, append(responses, podPage(100, 5, ""))...)
		var begun atomic.Int32
		require.NoError(t, pods.ForEach(t.Context(), &metav1.ListOptions{Limit: 5}, &dynamic.ForEachOptions{Workers: 3},
			func(context.Context, *dynamic.Resource, *unstructured.Object) error {
				begun.Add(1)
				time.Sleep(time.Minute)
				requested := len(server.seen())
				started := int(begun.Load()) + 3 // at most, as each worker may have one that has not begun
				assert.LessOrEqual(t, requested, started/5+1, "after %d objects", started)
				return nil
			}))
		assert.EqualValues(t, 105, begun.Load())
	})
}
