package applyset

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// setWall returns t with its wall clock moved by d, and its monotonic clock as it was: a time before a suspension of the machine.
func setWall(t *testing.T, from time.Time, d time.Duration) time.Time {
	t.Helper()
	moved := from
	fields := (*struct { // as time.Time has them: the seconds are above the 30 bits of nanoseconds
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&moved))
	fields.wall += uint64(d/time.Second) << 30
	require.Zero(t, moved.Sub(from))
	return moved
}

// TestLock_SuspendedMachine suspends the machine of a run: afterwards the run sends no request but the release of the lock.
func TestLock_SuspendedMachine(t *testing.T) {
	server := scripted.New("/v1 secrets secret Secret")
	const path = "/api/v1/namespaces/shop/secrets"
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web","namespace":"shop","resourceVersion":"1"}}`
	server.Handle("POST "+path, scripted.JSON(secret))
	server.Handle("GET "+path+"/web", scripted.JSON(secret))
	server.Handle("PATCH "+path+"/web", scripted.JSON(secret))
	client := dynamic.New(scripted.Connect(t, server, nil), nil)
	set := New(client, Parent{Namespace: "shop", Name: "web"}, &Options{LockDuration: time.Hour})
	ctx, lock, err := set.acquire(t.Context(), &parentState{recorded: newScope()}, newScope())
	require.NoError(t, err)
	defer lock.cancel(nil)
	secrets, err := client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	require.NoError(t, err)
	require.NoError(t, lock.check(ctx))
	_, err = secrets.Namespace("shop").Get(ctx, "web", nil)
	require.NoError(t, err)

	lock.deadline.Renew(setWall(t, time.Now(), -2*time.Hour))
	require.ErrorContains(t, lock.check(ctx), "could not be renewed")
	count := len(server.Requests())
	_, err = secrets.Namespace("shop").Get(ctx, "web", nil)
	require.ErrorContains(t, err, "could not be renewed")
	assert.Len(t, server.Requests(), count)
	require.NoError(t, lock.release(ctx, newScope()))
	assert.Equal(t, "PATCH", server.Requests()[count].Method)
}
