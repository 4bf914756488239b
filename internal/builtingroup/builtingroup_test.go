package builtingroup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIs_Groups(t *testing.T) {
	for group, want := range map[string]bool{
		"": true, "apps": true, "rbac.authorization.k8s.io": true, "flowcontrol.apiserver.k8s.io": true,
		"metrics.k8s.io": false, "gateway.networking.k8s.io": false, "storage.example.com": false, "snapshot.storage.k8s.io": false, "cert-manager.io": false,
	} {
		assert.Equal(t, want, Is(group), "%s", group)
	}
}
