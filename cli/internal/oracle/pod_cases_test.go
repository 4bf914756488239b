package oracle

import (
	"fmt"
	"slices"
)

// runMasks turn errors of kubectl 1.36 into those of 1.37.
var runMasks = []mask{
	{`\nSee '(anyctl|kubectl) run -h' for help and examples`, ""},
	{`, valid values are: [^\n]*`, ""},
	{`Invalid image name`, "invalid image name"},
	{`strconv.Atoi: parsing "x": invalid syntax`, "--port must be a number"},
}

// podCases are the lines of logs, exec, attach, run, cp, port-forward and proxy.
func podCases() []oracleCase {
	return slices.Concat(logCases(), execCases(), attachCases(), runCases(), copyCases(), forwardCases(), proxyCases())
}

// logCases are lines of logs. All pods of the sandbox have the same log.
func logCases() []oracleCase {
	ended := &difference{[]string{"stderr"}, "anyctl names the flag that has ended the log, kubectl has one of several texts"}
	return []oracleCase{
		{line: "logs solo", readOnly: true},
		{line: "logs solo -c side", readOnly: true},
		{line: "logs solo side", readOnly: true},
		{line: "logs pod/solo --tail=1 --timestamps", readOnly: true},
		{line: "logs solo --limit-bytes=5", readOnly: true},
		{line: "logs solo --since-time=2024-01-01T00:00:01Z", readOnly: true},
		{line: "logs solo --previous", readOnly: true},
		{line: "logs solo --all-containers --prefix", readOnly: true, unordered: true},
		{line: "logs solo --all-containers --timestamps --tail=1", readOnly: true, unordered: true},
		{line: "logs deploy/web", readOnly: true},
		{line: "logs svc/web --tail=1 --prefix", readOnly: true},
		{line: "logs deploy/web --all-pods", readOnly: true, unordered: true},
		{line: "logs -l app=web", readOnly: true, unordered: true},
		{line: "logs -l app=solo --all-containers --prefix", readOnly: true, unordered: true},
		{line: "logs -l app=none", readOnly: true},
		{line: "logs -f solo", readOnly: true, during: []step{{"hello from the sandbox", ""}}, fails: true, masks: lostLines},
		{line: "logs -f -l app=web --prefix", readOnly: true, unordered: true, during: []step{{"hello", ""}, {"hello", ""}}, fails: true, masks: lostLines},

		{line: "logs -f solo --request-timeout=6s", readOnly: true, fails: true, differs: ended},
		{line: "logs -f solo --all-containers --request-timeout=6s", readOnly: true, unordered: true, fails: true, differs: ended},
		{line: "logs -f -l app=solo -c side --request-timeout=6s", readOnly: true, fails: true, differs: ended},

		{line: "logs", fails: true},
		{line: "logs none", readOnly: true, fails: true},
		{line: "logs solo -c none", readOnly: true, fails: true},
		{line: "logs solo main -c side", readOnly: true, fails: true},
		{line: "logs solo --all-containers -c side", readOnly: true, fails: true},
		{line: "logs solo --tail=-2", readOnly: true, fails: true},
		{line: "logs solo --since=1h --since-time=2024-01-01T00:00:01Z", readOnly: true, fails: true},
		{line: "logs solo -l app=solo", readOnly: true, fails: true},
		{line: "logs -f -l app=web --max-log-requests=1", readOnly: true, fails: true},
		{line: "logs cm/settings", readOnly: true, fails: true, differs: &difference{[]string{"stderr"},
			"anyctl reads the logs of whatever has a spec.selector, and names the object that has none"}},
	}
}

// lostLines hide the end of an interrupted output, and the error that kubectl prints if a stream ends before the program.
var lostLines = []mask{{`(?s).*hello from the sandbox.*`, "hello"}, {`^\ncontext canceled$`, ""}}

func execCases() []oracleCase {
	return []oracleCase{
		{line: "exec solo -- echo hello", readOnly: true},
		{line: "exec solo -c side -- printf '%s|' 'a b' '$HOME'", readOnly: true},
		{line: "exec -i solo -q -- cat", readOnly: true, stdin: "one\ntwo\n"},
		{line: "exec deploy/web -- echo hello", readOnly: true},
		{line: "exec svc/web -- echo hello", readOnly: true},
		{line: "exec -it solo -- echo hello", readOnly: true},
		{line: "exec -f pod.yaml -c side -- echo hello", readOnly: true, files: execFiles()},
		{line: "exec -f deploy.yaml -- echo hello", readOnly: true, files: execFiles()},
		{line: "exec -f none.yaml -- ls", readOnly: true, fails: true},
		{line: "exec solo -- sh -c 'echo out; echo err >&2; exit 7'", readOnly: true, fails: true},
		{line: "exec solo -- sh -c 'kill -KILL $$'", readOnly: true, fails: true},
		{line: "exec solo -- no-such-program", readOnly: true, fails: true},
		{line: "exec solo -c none -- ls", readOnly: true, fails: true},
		{line: "exec none -- ls", readOnly: true, fails: true},
		{line: "exec solo --context limited -n $NS -- ls", readOnly: true, fails: true},
		{line: "exec solo ls", readOnly: true, fails: true},
		{line: "exec solo", readOnly: true, fails: true},
		{line: "exec widget/small -- ls", readOnly: true, fails: true, differs: &difference{[]string{"stderr"},
			"kubectl names its Go type, anyctl the object that selects no pods"}},
	}
}

func execFiles() map[string]string {
	return map[string]string{
		"pod.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: solo}\nspec: {containers: [{name: main, image: a}, {name: side, image: b}]}\n",
		"deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: web}}}\n",
	}
}

func attachCases() []oracleCase {
	return []oracleCase{
		{line: "attach solo -i -q", readOnly: true, stdin: "echo out; echo err >&2\n"},
		{line: "attach pod/solo -c side -i", readOnly: true, stdin: "echo out\n"},
		{line: "attach deployments web -i", readOnly: true, stdin: "exit 3\n"},
		{line: "attach solo -it -c main", readOnly: true, stdin: "echo out\n"},
		{line: "attach", fails: true},
		{line: "attach none", readOnly: true, fails: true},
		{line: "attach solo -c none", readOnly: true, fails: true},
		{line: "attach a b c", readOnly: true, fails: true},
	}
}

func runCases() []oracleCase {
	return []oracleCase{
		{line: "run web --image=example.com/web:1"},
		{line: "run web --image=example.com/web:1 --port=80 --expose", unordered: true, effect: []string{"svc/web"}, masks: []mask{{`(?s)clusterIPs?:[^\n]*\n(  - [^\n]*\n)?`, ""}}},
		{line: "run web --image=example.com/web:1 --dry-run=client -o yaml"},
		{line: "run web --image=web -n $NS --dry-run=client -o yaml --labels=a=b,c=d --annotations=x=y --annotations=z=1=2 --env=A=1 --env=B= --port=80 --expose --restart=Never --image-pull-policy=Never --privileged -- one two",
			unordered: true, masks: []mask{{`---\n---\n`, "---\n"}}}, // kubectl 1.36 writes the service first, and the separator twice
		{line: "run web --image=localhost:5000/a/b@sha256:0123456789abcdef0123456789abcdef --dry-run=client -o yaml --command -- one two"},
		{line: "run web --image=web --dry-run=client -o yaml --overrides '{\"spec\":{\"hostNetwork\":true}}'"},
		{line: "run web --image=web --dry-run=server"},
		{line: "run web --image=example.com/web:1 -i -q --rm", stdin: "echo out\n"},
		{line: "run", fails: true},
		{line: "run web --image=busybox --restart=Never --rm -i", stdin: "echo out\n", during: endPod("Failed", 7), endsAlone: true, fails: true},
		{line: "run web --image=busybox --restart=Never --rm -i", stdin: "echo out\n", during: endPod("Succeeded", 0), endsAlone: true},
		{line: "run web", fails: true},
		{line: "run web --image=", fails: true},
		{line: "run web --image=Web:1:2", fails: true, masks: runMasks},
		{line: "run -- web --image=a", fails: true},
		{line: "run web --image=a -t", fails: true, masks: runMasks},
		{line: "run web --image=a --rm", fails: true, masks: runMasks},
		{line: "run web --image=a --expose", fails: true, masks: runMasks},
		{line: "run web --image=a --restart=Sometimes", fails: true, masks: runMasks},
		{line: "run web --image=a --image-pull-policy=Sometimes", fails: true, masks: runMasks},
		{line: "run web --image=a -i --dry-run=client", fails: true, masks: runMasks},
		{line: "run web --image=a --env=1", fails: true},
		{line: "run web --image=a --annotations=1", fails: true},
		{line: "run web --image=a --labels=1", fails: true},
		{line: "run web --image=a --port=x", fails: true, masks: runMasks},
		{line: "run Web_ --image=a", fails: true, masks: []mask{{`,  or`, ", or"}}},
	}
}

func copyCases() []oracleCase {
	files := map[string]string{"note": "hello\n", "folder/a": "1\n", "folder/b/c": "2\n"}
	return []oracleCase{
		{line: "cp note solo:/tmp/oracle-$NS-note -c side", readOnly: true, files: files},
		{line: "cp folder $NS/solo:/tmp/oracle-$NS-folder -c main", readOnly: true, files: files},
		{line: "cp solo:/no/such/file x -c main", readOnly: true, differs: &difference{[]string{"stdout", "stderr", "code"},
			"kubectl prints tar's message and ends with code 0, though nothing was copied"}},
		// kubectl prints tar's notice about the removed leading slash if it comes before the end of the file.
		{line: "cp solo:/etc/passwd passwd -c main", readOnly: true, masks: []mask{{`(?m)^tar:.*\n?`, ""}}},
		{line: "cp note solo:/tmp/oracle-$NS-plain -c side --no-preserve", readOnly: true, files: files},
		{line: "cp solo:/etc/passwd passwd -c main --retries=3", readOnly: true, masks: []mask{{`(?m)^tar:.*\n?`, ""}}},
		{line: "cp note", fails: true, files: files},
		{line: "cp note other", fails: true, files: files},
		{line: "cp solo:/a solo:/b", fails: true},
		{line: "cp missing solo:/tmp/x", readOnly: true, fails: true},
		{line: "cp note none:/tmp/x", readOnly: true, fails: true, files: files},
		{line: "cp note a/b/c:/tmp/x", fails: true, files: files},
		{line: "cp note solo:", readOnly: true, fails: true, files: files},
	}
}

func forwardCases() []oracleCase {
	local := []mask{{`(127\.0\.0\.1|\[::1\]):\d+ ->`, "$1:PORT ->"}, {`(?m)^Forwarding from \[::1\].*\n`, ""}}
	until := []step{{"Forwarding from 127.0.0.1:", ""}}
	return []oracleCase{
		{line: "port-forward solo :8080", readOnly: true, masks: local, during: until},
		{line: "port-forward svc/web :80 :http", readOnly: true, masks: local, during: append(until, until...)},
		{line: "port-forward deploy/web :8080 --address 127.0.0.1", readOnly: true, masks: local, during: until},
		{line: "port-forward solo", fails: true},
		{line: "port-forward none 8080", readOnly: true, fails: true},
		{line: "port-forward solo :none", readOnly: true, fails: true},
		{line: "port-forward solo 1:70000", readOnly: true, fails: true},
		{line: "port-forward svc/web :81", readOnly: true, fails: true},
		{line: "port-forward svc/web :none", readOnly: true, fails: true},
		{line: "port-forward solo 8080 --address none", readOnly: true, fails: true},
	}
}

func proxyCases() []oracleCase {
	port := []mask{{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"}}
	killed := &difference{[]string{"code"}, "an interrupt kills kubectl; anyctl ends by itself with the code that a shell makes of that"}
	until := []step{{"Starting to serve on", ""}}
	return []oracleCase{
		{line: "proxy --port=0", masks: port, during: until, fails: true, differs: killed},
		{line: "proxy --unix-socket=proxy.sock", during: until, fails: true, differs: killed},
		{line: "proxy --port=0 --api-prefix=/custom/ --accept-hosts=.*", masks: port, during: until, fails: true, differs: killed},
		{line: "proxy --port=1 --unix-socket=x", fails: true},
		{line: "proxy --address=192.0.2.1", fails: true},
		{line: "proxy --accept-paths=(", fails: true, differs: &difference{[]string{"stderr", "code"},
			"kubectl logs the error as fatal and ends with code 255"}},
	}
}

// endPod ends the pod web of run once its attached session has written out. The sandbox's nodes run no containers.
func endPod(phase string, code int) []step {
	status := fmt.Sprintf(`{"status":{"phase":%q,"containerStatuses":[{"name":"web","image":"busybox","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":%d,"reason":"Error"}}}]}}`, phase, code)
	return []step{{"out", "patch pod web --subresource=status --type=merge -p '" + status + "'"}}
}
