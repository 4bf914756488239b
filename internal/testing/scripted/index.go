package scripted

import (
	"encoding/json"
	"strings"
)

// indexType is the Content-Type of discovery documents.
const indexType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// allVerbs are the verbs of stored resources.
const allVerbs = "create,delete,deletecollection,get,list,patch,update,watch"

type (
	indexGroup struct {
		Metadata map[string]string `json:"metadata"`
		Versions []*indexVersion   `json:"versions"`
	}
	indexVersion struct {
		Version   string           `json:"version"`
		Freshness string           `json:"freshness"`
		Resources []*indexResource `json:"resources"`
	}
	indexKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
	indexResource struct {
		Resource     string              `json:"resource"`
		Singular     string              `json:"singularResource"`
		Scope        string              `json:"scope"`
		Kind         indexKind           `json:"responseKind"`
		ShortNames   []string            `json:"shortNames"`
		Categories   []string            `json:"categories"`
		Verbs        []string            `json:"verbs"`
		Subresources []*indexSubresource `json:"subresources"`
	}
	indexSubresource struct {
		Subresource string    `json:"subresource"`
		Kind        indexKind `json:"responseKind"`
		Verbs       []string  `json:"verbs"`
	}
)

// Index returns the aggregated discovery document of the core group, or of all groups with a name. Each line of resources is a resource,
// a subresource, or a version without resources:
//
//	[stale] [cluster] GROUP/VERSION PLURAL SINGULAR KIND [SHORTNAMES [CATEGORIES [VERBS]]]
//	GROUP/VERSION PLURAL/SUBRESOURCE [GROUP/VERSION/]KIND VERBS
//	[stale] GROUP/VERSION
//
// Lists are separated by commas, "-" is an empty field, and the default verbs are those of a stored resource. "stale" marks the
// version as stale, "cluster" the resource as cluster-scoped.
func Index(resources string, core bool) string {
	groups := []*indexGroup{}
	for line := range strings.Lines(strings.TrimSpace(resources)) {
		line = strings.TrimSpace(line)
		line, isStale := strings.CutPrefix(line, "stale ")
		line, isCluster := strings.CutPrefix(line, "cluster ")
		fields := fieldsOf(line, 7)
		group, version, _ := strings.Cut(fields[0], "/")
		if (group == "") != core {
			continue
		}
		v := versionIn(&groups, group, version)
		if isStale {
			v.Freshness = "Stale"
		}
		v.add(group, fields, isCluster)
	}
	document, _ := json.Marshal(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups})
	return string(document)
}

// versionIn returns the version of a group, which it adds if needed.
func versionIn(groups *[]*indexGroup, group, version string) *indexVersion {
	var found *indexGroup
	for _, g := range *groups {
		if g.Metadata["name"] == group {
			found = g
		}
	}
	if found == nil {
		found = &indexGroup{Metadata: map[string]string{"name": group}}
		*groups = append(*groups, found)
	}
	for _, v := range found.Versions {
		if v.Version == version {
			return v
		}
	}
	v := &indexVersion{Version: version, Freshness: "Current", Resources: []*indexResource{}}
	found.Versions = append(found.Versions, v)
	return v
}

// add adds the resource or subresource of a line.
func (v *indexVersion) add(group string, fields []string, isCluster bool) {
	if fields[1] == "-" { // a version without resources
		return
	}
	plural, subresource, isSubresource := strings.Cut(fields[1], "/")
	if isSubresource {
		for _, r := range v.Resources {
			if r.Resource == plural {
				r.Subresources = append(r.Subresources, &indexSubresource{subresource, kindOf(group, v.Version, fields[2]), list(fields[3])})
			}
		}
		return
	}
	verbs := fields[6]
	if verbs == "-" {
		verbs = allVerbs
	}
	scope := "Namespaced"
	if isCluster {
		scope = "Cluster"
	}
	v.Resources = append(v.Resources, &indexResource{
		Resource: plural, Singular: strings.Trim(fields[2], "-"), Scope: scope, Kind: kindOf(group, v.Version, strings.Trim(fields[3], "-")),
		ShortNames: list(fields[4]), Categories: list(fields[5]), Verbs: list(verbs),
	})
}

// kindOf reads a kind with its group and version, which are otherwise those of the resource.
func kindOf(group, version, text string) indexKind {
	if parts := strings.Split(text, "/"); len(parts) == 3 {
		return indexKind{parts[0], parts[1], parts[2]}
	}
	return indexKind{group, version, text}
}

func list(field string) []string {
	if field == "-" {
		return []string{}
	}
	return strings.Split(field, ",")
}
