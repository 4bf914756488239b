package inspect

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// TestDescribe_PodsOfClaimUnreadable describes a claim whose pods cannot be read: without them it would be described as unused.
func TestDescribe_PodsOfClaimUnreadable(t *testing.T) {
	for name, tc := range map[string]struct {
		pods    http.HandlerFunc // nil interrupts the program
		warning string
	}{
		"interrupted":  {},
		"server error": {scripted.Status(http.StatusInternalServerError, "InternalError"), "Warning: the description lacks pods: "},
		"forbidden":    {pods: scripted.Status(http.StatusForbidden, "Forbidden")},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			api := scripted.New("/v1 persistentvolumeclaims persistentvolumeclaim PersistentVolumeClaim pvc\n/v1 pods pod Pod po\n/v1 events event Event ev")
			api.Handle("GET /api/v1/namespaces/shop/persistentvolumeclaims/data",
				scripted.JSON(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"}}`))
			api.Handle("GET /api/v1/namespaces/shop/pods", func(w http.ResponseWriter, r *http.Request) {
				if tc.pods == nil {
					cancel()
				} else {
					tc.pods(w, r)
				}
			})
			state, stdout, stderr := scriptedState(t, api)
			cmd := describeCommand(state)
			cmd.SetArgs([]string{"pvc", "data", "--show-events=false"})
			err := cmd.ExecuteContext(ctx)
			if tc.pods == nil {
				require.ErrorIs(t, err, context.Canceled)
				assert.NotContains(t, stdout.String(), "Name:")
				return
			}
			require.NoError(t, err)
			assert.Contains(t, stdout.String(), "Used By:")
			if tc.warning == "" {
				assert.Empty(t, stderr.String())
			} else {
				assert.Contains(t, stderr.String(), tc.warning)
			}
		})
	}
}
