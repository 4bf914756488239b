// Package resourcepath parses the paths of API requests like the API server. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
package resourcepath

import "strings"

// Path is the parsed path of a resource, an object or a subresource.
type Path struct {
	Group, Version string
	// Namespace is "" for a Namespace itself, whose name is Name.
	Namespace                   string
	Resource, Name, Subresource string
	Rest                        []string // segments after the subresource, such as the path of a request through a proxy
	IsWatch                     bool     // of the deprecated form /api/v1/watch/pods
}

// Parse parses a path. Its segments are not unescaped. ok is false for paths of no resource, such as /version and /apis/apps.
func Parse(path string) (p Path, ok bool) {
	return ParseSegments(strings.Split(strings.Trim(path, "/"), "/"))
}

// ParseSegments is [Parse] for the segments of a path.
func ParseSegments(segments []string) (p Path, ok bool) {
	switch {
	case segments[0] == "api" && len(segments) > 2:
		p.Version = segments[1]
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		p.Group = segments[1]
		p.Version = segments[2]
		segments = segments[3:]
	default:
		return p, false
	}
	if segments[0] == "watch" && len(segments) > 1 {
		p.IsWatch = true
		segments = segments[1:]
	}
	// A namespace is itself a resource with subresources.
	if segments[0] == "namespaces" && len(segments) > 2 && segments[2] != "status" && segments[2] != "finalize" {
		p.Namespace = segments[1]
		segments = segments[2:]
	}
	p.Resource = segments[0]
	if len(segments) > 1 {
		p.Name = segments[1]
	}
	if len(segments) > 2 {
		p.Subresource = segments[2]
		p.Rest = segments[3:]
	}
	return p, true
}
