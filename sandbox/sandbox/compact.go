//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Compact makes etcd forget every revision before the newest and returns that
// revision: older resource versions and continue tokens expire (410 Gone). An API
// server's watch cache still remembers recent events; restart it to expire those.
// See https://etcd.io/docs/v3.6/op-guide/maintenance/.
func (c *Cluster) Compact(ctx context.Context) (revision string, err error) {
	m, err := c.member(string(Etcd))
	if err != nil {
		return "", err
	}
	var status struct{ Header struct{ Revision string } }
	if err := post(ctx, c.etcd, m.url+"/v3/maintenance/status", struct{}{}, &status); err != nil {
		return "", fmt.Errorf("asking etcd for its revision: %w", err)
	}
	revision = status.Header.Revision
	err = post(ctx, c.etcd, m.url+"/v3/kv/compaction", map[string]any{"revision": revision, "physical": true}, nil)
	var answer *statusError
	if errors.As(err, &answer) && strings.Contains(answer.body, "has been compacted") {
		return revision, nil // nothing was written since the last time
	}
	if err != nil {
		return "", fmt.Errorf("compacting etcd to revision %s: %w", revision, err)
	}
	return revision, nil
}
