package controller

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// TestWaitServed_GraceForErrorsInARow has a server that takes a while to serve a kind, and fails for some of it.
func TestWaitServed_GraceForErrorsInARow(t *testing.T) {
	definition := &unstructured.Object{Object: map[string]any{"spec": map[string]any{
		"group": "coordination.k8s.io", "names": map[string]any{"kind": "Lease"}, "versions": []any{map[string]any{"name": "v1", "served": true}},
	}}}
	for name, tc := range map[string]struct {
		failures []time.Duration // from, to, from, to
		want     time.Duration   // of the error; 0 for none
	}{
		"a failure after a long wait": {[]time.Duration{10 * time.Second, 11 * time.Second}, 0},
		"several failures":            {[]time.Duration{time.Second, 5 * time.Second, 6 * time.Second, 10 * time.Second}, 0},
		"failures in a row":           {[]time.Duration{10 * time.Second, time.Minute}, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				start := time.Now()
				server.Override = func(w http.ResponseWriter, _ *http.Request) bool {
					elapsed := time.Since(start)
					for i := 0; i < len(tc.failures); i += 2 {
						if tc.failures[i] <= elapsed && elapsed < tc.failures[i+1] {
							scripted.Status(http.StatusConflict, "Conflict")(w, nil)
							return true
						}
					}
					if elapsed < 20*time.Second {
						scripted.NotServed(w, nil)
						return true
					}
					return false
				}
				resource, err := waitServed(t.Context(), client, definition)
				if tc.want != 0 {
					assert.True(t, apierrors.IsConflict(err), "%v", err)
					assert.InDelta(t, tc.want, time.Since(start), float64(time.Second))
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "leases.coordination.k8s.io", resource.String())
				assert.GreaterOrEqual(t, time.Since(start), 20*time.Second)
			})
		})
	}
}
