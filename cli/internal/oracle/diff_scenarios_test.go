package oracle

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/planscenario"
)

// TestDiff_ScenariosOfPlans compares diff for the scenarios of plans that need neither a copy nor a set: kubectl diff knows none.
func TestDiff_ScenariosOfPlans(t *testing.T) {
	cluster.NeedComponents(t, "kube-controller-manager", "kube-scheduler", "nodes")
	o := newSetOracle(t)
	for _, s := range planscenario.All() {
		if s.NeedsCopy || s.IsSet {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := scenarioCase(&s)
			want := o.runIn(t, c, o.kubectl)
			got := o.runIn(t, c, o.anyctl)
			t.Logf("exit code %d", want.code)
			assertSame(t, "", scenarioDifferences[s.Name], &want, &got)
		})
	}
}

// scenarioDifferences explains differences between kubectl and anyctl, by the name of the scenario.
var scenarioDifferences = map[string]*difference{
	"pod node selector": {[]string{"stderr"}, "white space in a server's message is joined"},
	"secret data":       {[]string{"stdout"}, "kubectl masks a Secret that does not exist, and compares with the text null"},
	"unknown kind":      {[]string{"stderr"}, "the position in the file replaces a hint"},
}

func scenarioCase(s *planscenario.Scenario) *oracleCase {
	names := strings.NewReplacer("NAMESPACE", "$NS", "GROUP", "$NS.example.com")
	c := &oracleCase{
		line:  "diff --server-side --field-manager=oracle -f a.yaml",
		setup: names.Replace(s.Setup), otherSetup: names.Replace(s.Others), files: map[string]string{"a.yaml": names.Replace(s.Objects)},
		masks: scenarioMasks,
	}
	if s.Force {
		c.line += " --force-conflicts"
	}
	for kind, pair := range map[string]string{"Deployment": "deployments/web", "StatefulSet": "statefulsets/db", "Pod": "pods/p"} {
		if strings.Contains(s.Setup+s.Others, "\nkind: "+kind+"\n") {
			c.ready = append(c.ready, pair) // its controllers change the object no more
		}
	}
	return c
}

// scenarioMasks also hide values that the server chooses at each dry run.
var scenarioMasks = append([]mask{{`kube-api-access-\w{5}`, "kube-api-access"}}, diffMasks...)
