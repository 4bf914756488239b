package dynamic_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
)

// names lists pods and returns their kinds and names.
func names(t *testing.T, pods *dynamic.Resource, opts *metav1.ListOptions) ([]string, error) {
	t.Helper()
	var got []string
	for pod, err := range pods.List(t.Context(), opts) {
		if err != nil {
			return got, err
		}
		got = append(got, pod.GetKind()+" "+pod.GetName())
	}
	return got, nil
}

func TestList_ContinueTokenWithoutResourceVersion(t *testing.T) {
	client, server := script(t,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"token=1"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"c"}}]}`)
	opts := &metav1.ListOptions{Limit: 2, ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact, LabelSelector: "x"}
	got, err := names(t, resource(t, client, "pods"), opts)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
	assert.Equal(t, []string{
		"GET /api/v1/namespaces/home/pods?labelSelector=x&limit=2&resourceVersion=9&resourceVersionMatch=Exact",
		"GET /api/v1/namespaces/home/pods?continue=token%3D1&labelSelector=x&limit=2",
	}, server.seen())
	assert.Empty(t, opts.Continue, "the caller's options stay as they are")
}

func TestList_IteratorIsReusable(t *testing.T) {
	client, _ := script(t, listReply)
	all := resource(t, client, "pods").List(t.Context(), nil)
	for range 2 {
		count := 0
		for _, err := range all {
			require.NoError(t, err)
			count++
		}
		assert.Equal(t, 1, count)
	}
}

func TestListPage_ItemsAndMetadata(t *testing.T) {
	client, _ := script(t, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}],
		"metadata":{"resourceVersion":"9","continue":"more","remainingItemCount":41}}`)
	page, err := resource(t, client, "pods").ListPage(t.Context(), &metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	left := int64(41)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &left}, page.ListMeta)
	assert.Equal(t, metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, page.TypeMeta)
	require.Len(t, page.Items, 1)
	assert.Equal(t, "v1", page.Items[0].GetAPIVersion())
}

func TestList_BrokenResponseIsError(t *testing.T) {
	for name, tc := range map[string]struct {
		reply string
		is    error
		items int
	}{
		"cut in an item":       {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"na`, io.ErrUnexpectedEOF, 1},
		"cut between items":    {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}`, io.ErrUnexpectedEOF, 1},
		"cut before its end":   {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]`, io.ErrUnexpectedEOF, 1},
		"an empty response":    {``, io.ErrUnexpectedEOF, 0},
		"a page":               {`<html>`, nil, 0},
		"one object":           {podReply, nil, 0},
		"a list of other JSON": {`{"kind":"PodList","apiVersion":"v1","items":[1]}`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, tc.reply)
			got, err := names(t, resource(t, client, "pods"), nil)
			require.ErrorContains(t, err, "list pods: GET http://server.test")
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			assert.Len(t, got, tc.items)
			_, err = resource(t, client, "pods").ListPage(t.Context(), nil)
			require.Error(t, err)
		})
	}
}

func TestList_BreakClosesConnection(t *testing.T) {
	pods, left := stalling(t, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},`)
	for pod, err := range pods.List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "a", pod.GetName())
		break
	}
	<-left
}
