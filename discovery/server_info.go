package discovery

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/sanitize"
)

// ServerVersion requests the server's version, GET /version.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	doc, err := c.get(ctx, "/version", accept(plainJSON))
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(doc.Body, info); err != nil {
		return nil, fmt.Errorf("GET /version: decode version: %w", sanitize.Error(err, maxText))
	}
	return info, nil
}
