package fleet_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// opener opens connections to a cluster in memory, after a call of fail.
type opener struct {
	fail  func(token string) error
	calls atomic.Int64
}

// newFleet returns a fleet of a cluster, whose Run lasts as long as the test.
func (o *opener) newFleet(t *testing.T, source fleet.Source, c *podCluster) *fleet.Fleet {
	t.Helper()
	server := scripted.RoundTripper(t, c)
	f := fleet.New(&fleet.Options{
		Sources: []fleet.Source{source}, Logger: slog.New(slog.DiscardHandler),
		Open: func(_ string, cfg *transport.Config) (*transport.Conn, error) {
			o.calls.Add(1)
			if err := o.fail(cfg.Token.Reveal()); err != nil {
				return nil, err
			}
			return transport.New(cfg.Server, &http.Client{Transport: server}, nil)
		},
	})
	run(t, f.Run)
	return f
}

func TestCache_OpensAgainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		var exists atomic.Bool
		o := &opener{fail: func(string) error {
			if exists.Load() {
				return nil
			}
			return errors.New("no such file")
		}}
		f := o.newFleet(t, static(east), east)
		pods := newPods(t, f)
		time.Sleep(5 * time.Minute)
		require.EqualError(t, pods.Clusters()[0].Err, `connect to cluster "east": no such file`)
		assert.Less(t, o.calls.Load(), int64(15), "a stream opens with a backoff")
		assert.Greater(t, o.calls.Load(), int64(5))
		before := o.calls.Load()
		for range 100 {
			_, err := f.Client("east")
			require.EqualError(t, err, `connect to cluster "east": no such file`)
		}
		assert.LessOrEqual(t, o.calls.Load(), before+1, "a failure is kept for a second")
		exists.Store(true)
		time.Sleep(2 * time.Second)
		_, err := f.Client("east")
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.NoError(t, pods.Health())
		assert.Equal(t, []string{"east/web"}, names(pods.List("", nil)))
		after := o.calls.Load()
		time.Sleep(time.Hour)
		assert.Equal(t, after, o.calls.Load(), "a connection is kept")
	})
}

// TestCache_NewConfigurationEndsWaitAfterFailure has a stream that waits after the error of an earlier Open than the last.
func TestCache_NewConfigurationEndsWaitAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		source, members := dynamicSource()
		o := &opener{fail: func(token string) error {
			if token == "second" {
				return nil
			}
			return errors.New("no such file")
		}}
		f := o.newFleet(t, source, east)
		members().Set("east", east.config("first"))
		pods := newPods(t, f)
		time.Sleep(10 * time.Minute)
		for range 30 {
			time.Sleep(2 * time.Second)
			_, err := f.Client("east")
			require.Error(t, err)
		}
		members().Set("east", east.config("second"))
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, fleet.Synced, pods.Clusters()[0].State)
	})
}

func TestFleet_ClientAfterPanicOfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		defect := true
		o := &opener{fail: func(string) error {
			if defect {
				panic("defect")
			}
			return nil
		}}
		f := o.newFleet(t, static(east), east)
		synctest.Wait()
		for range 2 {
			assert.Panics(t, func() { _, _ = f.Client("east") })
		}
		defect = false
		client, err := f.Client("east")
		require.NoError(t, err)
		pods, err := client.Resource(t.Context(), "pods")
		require.NoError(t, err)
		assert.Equal(t, "pods", pods.APIResource().GVR.Resource)
	})
}

// TestFleet_ClientReadsMissingFileAgain has a certificate authority that is written later, without a change of the configuration.
func TestFleet_ClientReadsMissingFileAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := filepath.Join(t.TempDir(), "ca.crt")
		f := fleet.New(&fleet.Options{Sources: []fleet.Source{func(_ context.Context, clusters *fleet.Clusters) error {
			clusters.Set("east", &transport.Config{Server: "https://east", CAFile: authority})
			return nil
		}}})
		t.Cleanup(f.Close)
		run(t, f.Run)
		synctest.Wait()
		_, err := f.Client("east")
		require.ErrorIs(t, err, os.ErrNotExist)
		certificate, _ := credentials.NewCertificate(t, "ca", time.Now().Add(time.Hour))
		write(t, authority, string(certificate))
		time.Sleep(time.Second)
		_, err = f.Client("east")
		require.NoError(t, err)
	})
}
