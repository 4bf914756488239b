package history

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/cluster"
)

// revisions returns the revisions of a key's events, negative for deletions.
func revisions(r *Recorder, epoch *Epoch, key string) (all []int64) {
	for _, event := range epoch.of(r.intern(key)) {
		if event.Deleted() {
			event.Revision = -event.Revision
		}
		all = append(all, event.Revision)
	}
	return all
}

func TestEtcd_RestartAndCompaction(t *testing.T) {
	client := connectEtcd(t)
	prefix := "/history-test/" + rand.Text() + "/"
	put := func(key string) int64 {
		response, err := client.Put(t.Context(), prefix+key, "")
		require.NoError(t, err)
		return response.Header.Revision
	}
	remove := func(key string) int64 {
		response, err := client.Delete(t.Context(), prefix+key)
		require.NoError(t, err)
		return response.Header.Revision
	}
	first := put("a")
	r := NewRecorder()
	e, err := RecordEtcd(t.Context(), client, prefix, r)
	require.NoError(t, err)
	defer func() { e.Close() }()
	second := put("a")
	cluster.Restart(t, cluster.Etcd, true)
	third := put("b")
	_, err = e.Await(t.Context())
	require.NoError(t, err)
	epoch := e.Epochs()[0]
	assert.Equal(t, []int64{first, second}, revisions(r, epoch, prefix+"a"))
	assert.Equal(t, []int64{third}, revisions(r, epoch, prefix+"b"))
	assert.False(t, epoch.isKnown(first-1))
	assert.True(t, epoch.isKnown(second))

	e.Close() // as if it were disconnected
	fourth := put("b")
	remove("a")
	last := put("c")
	_, err = client.Compact(t.Context(), last)
	require.NoError(t, err)
	e.watch(t.Context())
	require.NoError(t, e.list(t.Context()))
	epoch = e.Epochs()[0]
	assert.Equal(t, []int64{third, fourth}, revisions(r, epoch, prefix+"b"))
	end := epoch.Gaps[1].Last
	assert.Equal(t, []int64{first, second, -end}, revisions(r, epoch, prefix+"a"), "the revision of the deletion is unknown")
	assert.False(t, epoch.isKnown(fourth))
	assert.True(t, epoch.isKnown(end))

	require.NoError(t, e.Restored(t.Context()))
	remove("c")
	_, err = e.Await(t.Context())
	require.NoError(t, err)
	require.Len(t, e.Epochs(), 2)
	assert.Equal(t, []int64{fourth}, revisions(r, e.Epochs()[1], prefix+"b"))
	assert.Len(t, revisions(r, e.Epochs()[1], prefix+"c"), 2)
}
