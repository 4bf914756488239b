package controllerruntime

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/internal/testing/client"
)

// countingWarnings is a warning handler of a config.
type countingWarnings struct {
	mu    sync.Mutex
	texts []string
}

func (c *countingWarnings) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

// TestFromConfig_WarnsOnce creates an object with an unknown field by each client of a manager.
func TestFromConfig_WarnsOnce(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	config := adminConfig(t)
	warnings := &countingWarnings{}
	config.WarningHandler = warnings
	from, err := FromConfig(t.Context(), config)
	require.NoError(t, err)
	for name, newClient := range map[string]ctrlclient.NewClientFunc{"anykind": from.NewClient, "controller-runtime": ctrlclient.New} {
		t.Run(name, func(t *testing.T) {
			warnings.texts = nil
			c, err := newClient(from.Config(), ctrlclient.Options{FieldValidation: "Warn"})
			require.NoError(t, err)
			obj := untyped(configMaps, namespace, name)
			obj.Object["unknown"] = "x"
			require.NoError(t, c.Create(t.Context(), obj))
			assert.Len(t, warnings.texts, 1)
		})
	}
}

// TestFromConfig_KeepsSettings compares the settings that do not authenticate.
func TestFromConfig_KeepsSettings(t *testing.T) {
	config := &rest.Config{
		Host: "https://127.0.0.1:1", BearerToken: "secret", UserAgent: "agent", Timeout: time.Minute, WarningHandler: &countingWarnings{},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	from, err := FromConfig(t.Context(), config)
	require.NoError(t, err)
	own := from.Config()
	assert.Equal(t, config.ContentConfig, own.ContentConfig)
	assert.Equal(t, config.UserAgent, own.UserAgent)
	assert.Equal(t, config.Timeout, own.Timeout)
	assert.Equal(t, config.WarningHandler, own.WarningHandler)
	assert.Empty(t, own.BearerToken)
}
