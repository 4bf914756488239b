package discoverytest

import (
	"fmt"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	firstWords = []string{
		"Alert", "Backup", "Cache", "Data", "Edge", "Fleet", "Gateway", "Host", "Image", "Job", "Key", "Log", "Mesh",
		"Network", "Object", "Policy", "Queue", "Route", "Secret", "Tenant", "User", "Vault", "Web", "XML", "Yarn", "Zone",
	}
	lastWords = []string{
		"Binding", "Class", "Claim", "Entry", "Grant", "Index", "Instance", "Pool", "Proxy", "Quota", "Set", "Status", "Topic",
	}
	// Each group of definitions serves the versions of a list, the preferred one first.
	versionLists = [][]string{{"v1"}, {"v1", "v1beta1"}, {"v2", "v1", "v1alpha1"}, {"v1beta2", "v1beta1"}, {"v1alpha1"}, {"2024-01", "v1"}}
)

// AddDefinitions adds resources of CustomResourceDefinitions until there are want in all: with names of every form,
// several versions, both scopes, short names and categories. Some names conflict among themselves or with built-in names.
func (c *Catalog) AddDefinitions(want int) {
	for i := 0; c.count < want; i++ {
		group := fmt.Sprintf("team%d.example.com", i%41)
		if i%41 == 40 {
			group = "apps.example.com" // begins as a built-in group is called
		}
		for v, version := range versionLists[(i%41)%len(versionLists)] {
			if v > 0 && i%4 == 3 {
				continue // not every version of a group has every resource
			}
			c.Add(group, version, false, definition(i))
		}
	}
}

func definition(i int) *apidiscovery.APIResourceDiscovery {
	kind := firstWords[i%len(firstWords)] + lastWords[(i/len(firstWords))%len(lastWords)]
	if round := i / (len(firstWords) * len(lastWords)); round > 0 {
		kind += fmt.Sprintf("V%d", round)
	}
	plural, singular := names(kind, i)
	var short, categories []string
	if i%3 == 0 {
		short = append(short, fmt.Sprintf("%s%d", strings.ToLower(kind[:2]), i))
	}
	switch {
	case i%29 == 0 && i < 29*41: // a kind that many groups have, each once
		kind = "Cluster"
		plural = "clusters"
		singular = "cluster"
	case i%31 == 0:
		short = append(short, "dup")
	case i%37 == 0: // a built-in short name, and a built-in plural
		short = append(short, "svc", "secrets")
	case i%43 == 0 && i < 43*41:
		kind = "Event"
		plural = "events"
		singular = "event"
	}
	if i%5 == 0 {
		categories = append(categories, "all")
	}
	if i%7 == 0 {
		categories = append(categories, "teamwork")
	}
	return NewResource(plural, singular, kind, i%2 == 0, short, categories)
}

func names(kind string, i int) (plural, singular string) {
	lower := strings.ToLower(kind)
	switch {
	case i%11 == 0:
		return lower, lower // the same word for singular and plural
	case i%13 == 0:
		return lower + "s", "one" + lower // a singular that is not the kind
	case i%17 == 0:
		return lower + "s", "" // a server that does not tell it
	case strings.HasSuffix(lower, "y"):
		return strings.TrimSuffix(lower, "y") + "ies", lower
	case strings.HasSuffix(lower, "s") || strings.HasSuffix(lower, "x"):
		return lower + "es", lower
	default:
		return lower + "s", lower
	}
}

// EveryForm returns a server with built-in resources, 320 more, and a group with a stale version.
func EveryForm() *Catalog {
	served := &Catalog{}
	served.AddBuiltIn()
	served.AddDefinitions(served.count + 320)
	for _, version := range []string{"v2", "v1"} {
		served.Add("stale.example.com", version, version == "v2", NewResource("gears", "gear", "Gear", true, []string{"gr"}, nil))
	}
	served.Add("stale.example.com", "v2", true, NewResource("axles", "axle", "Axle", true, nil, nil))
	return served
}

// Each calls do with each resource, its group version and the staleness of the group version.
func (c *Catalog) Each(do func(gv schema.GroupVersion, stale bool, resource *apidiscovery.APIResourceDiscovery)) {
	for _, group := range c.Groups {
		for _, version := range group.Versions {
			for i := range version.Resources {
				do(schema.GroupVersion{Group: group.Name, Version: version.Version},
					version.Freshness == apidiscovery.DiscoveryFreshnessStale, &version.Resources[i])
			}
		}
	}
}
