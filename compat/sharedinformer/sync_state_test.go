package sharedinformer

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSyncState_SetOnce(t *testing.T) {
	state := newSyncState("pods")
	assert.False(t, state.HasSynced())
	select {
	case <-state.Synced():
		require.Fail(t, "synced")
	default:
	}
	for range 2 {
		state.setSynced()
		assert.True(t, state.HasSynced())
		<-state.Synced()
	}
}

// TestSyncState_DoneChecker calls the method without its name, which client-go before 0.36 lacks.
func TestSyncState_DoneChecker(t *testing.T) {
	state := newSyncState("pods")
	method := reflect.ValueOf(state).MethodByName("HasSyncedChecker")
	if !method.IsValid() {
		t.Skip("this version of client-go has no DoneChecker")
	}
	checker, ok := method.Call(nil)[0].Interface().(interface {
		Name() string
		Done() <-chan struct{}
	})
	require.True(t, ok)
	assert.Equal(t, "pods", checker.Name())
	select {
	case <-checker.Done():
		require.Fail(t, "done")
	default:
	}
	state.setSynced()
	<-checker.Done()
}
