package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// OpenAPI asks for the index of the server's own description of its API: for each path, such as apis/apps/v1, where
// its OpenAPI v3 document is, with a hash that changes when the document does.
// See https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3. Documents elsewhere than on the server are
// left out.
func (c *Client) OpenAPI(ctx context.Context) (map[string]string, error) {
	answer, err := c.get(ctx, "/openapi/v3", plainJSON())
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := codec.Unmarshal(answer.body, &index); err != nil {
		return nil, fmt.Errorf("GET /openapi/v3: the answer is no index: %w", err)
	}
	if len(index.Paths) == 0 {
		return nil, errors.New("GET /openapi/v3: the index is empty")
	}
	urls := make(map[string]string, len(index.Paths))
	for name, document := range index.Paths {
		if isServerRelative(document.ServerRelativeURL) {
			urls[name] = document.ServerRelativeURL
		}
	}
	return urls, nil
}

// isServerRelative reports whether a URL is a path on the server that leads where it says.
func isServerRelative(text string) bool {
	target, err := url.Parse(text)
	return err == nil && target.Scheme == "" && target.Host == "" && strings.HasPrefix(target.Path, "/") &&
		path.Clean(target.Path) == strings.TrimSuffix(target.Path, "/")
}
