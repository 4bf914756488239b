package inspect

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
)

// rulesStatus is the status of a SelfSubjectRulesReview.
type rulesStatus struct {
	ResourceRules []struct {
		Verbs         []string `json:"verbs"`
		APIGroups     []string `json:"apiGroups"`
		Resources     []string `json:"resources"`
		ResourceNames []string `json:"resourceNames"`
	} `json:"resourceRules"`
	NonResourceRules []struct {
		Verbs           []string `json:"verbs"`
		NonResourceURLs []string `json:"nonResourceURLs"`
	} `json:"nonResourceRules"`
	Incomplete      bool   `json:"incomplete"`
	EvaluationError string `json:"evaluationError"`
}

// rule is the verbs of a resource, optionally of a single object, or of a non-resource URL.
type rule struct {
	group, resource string
	names, paths    []string
	verbs           []string
}

// rules splits the rules by resource and name, merges the verbs of each, and sorts in kubectl's order.
func (s *rulesStatus) rules() []rule {
	var all []rule
	for _, r := range s.ResourceRules {
		names := [][]string{nil}
		if len(r.ResourceNames) > 0 {
			names = nil
			for _, name := range r.ResourceNames {
				names = append(names, []string{name})
			}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, named := range names {
					all = addVerbs(all, rule{group: group, resource: resource, names: named}, r.Verbs)
				}
			}
		}
	}
	for _, r := range s.NonResourceRules {
		for _, path := range r.NonResourceURLs {
			for _, verb := range r.Verbs {
				all = append(all, rule{paths: []string{path}, verbs: []string{verb}})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].sortKey() < all[j].sortKey() })
	return all
}

// addVerbs adds verbs to the rule with the group, resource and name of add. Without such a rule it appends add.
func addVerbs(all []rule, add rule, verbs []string) []rule {
	i := slices.IndexFunc(all, func(r rule) bool {
		return r.group == add.group && r.resource == add.resource && slices.Equal(r.names, add.names)
	})
	if i < 0 {
		i = len(all)
		all = append(all, add)
	}
	for _, verb := range verbs {
		if !slices.Contains(all[i].verbs, verb) {
			all[i].verbs = append(all[i].verbs, verb)
		}
	}
	return all
}

// sortKey returns the sort key of kubectl: verbs, groups, resources, names and paths.
func (r *rule) sortKey() string {
	groups := []string{}
	resources := []string{}
	if len(r.paths) == 0 {
		groups = []string{r.group}
		resources = []string{r.resource}
	}
	return fmt.Sprintf("{Verbs:%v,APIGroups:%v,Resources:%v,ResourceNames:%v,NonResourceURLs:%v,}", r.verbs, groups, resources, r.names, r.paths)
}

// name returns the resource as RESOURCE.GROUP/SUBRESOURCE.
func (r *rule) name() string {
	name, subresource, hasSubresource := strings.Cut(r.resource, "/")
	if r.group != "" && name != "" {
		name += "." + r.group
	}
	if hasSubresource {
		name += "/" + subresource
	}
	return name
}

func writeRules(out io.Writer, rules []rule, header bool) error {
	w := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0)
	if header {
		fmt.Fprintln(w, "Resources\tNon-Resource URLs\tResource Names\tVerbs")
	}
	for i := range rules {
		r := &rules[i]
		fmt.Fprintf(w, "%s\t%v\t%v\t%v\n", r.name(), r.paths, r.names, r.verbs)
	}
	return w.Flush()
}
