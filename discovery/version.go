package discovery

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion asks the server for its version, as GET /version answers it.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	answer, err := c.get(ctx, "/version", plainJSON())
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(answer.body, info); err != nil {
		return nil, fmt.Errorf("GET /version: the answer is no version: %w", err)
	}
	return info, nil
}
