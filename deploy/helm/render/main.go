// Renders a chart as `helm template` does, for machines where Helm cannot be had: with the same template engine (Go's
// text/template), the same function library (sprig) and the functions that Helm adds to it.
//
//	render CHART RELEASE [VALUES...]
//
// What Helm has beside this and the chart does not use is missing: dependencies, hooks, .Files, a cluster to look things
// up in. deploy/test-chart checks the values against values.schema.json.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("usage: render CHART RELEASE [VALUES...]"))
	}
	chart, release := os.Args[1], os.Args[2]
	about := load(filepath.Join(chart, "Chart.yaml"))
	settings := load(filepath.Join(chart, "values.yaml"))
	for _, file := range os.Args[3:] {
		settings = merge(settings, load(file))
	}
	data := values{
		"Values":       settings,
		"Chart":        capitalised(about),
		"Release":      values{"Name": release, "Namespace": "default", "Service": "Helm", "Revision": 1, "IsInstall": true, "IsUpgrade": false},
		"Capabilities": values{"KubeVersion": values{"Version": "v1.30.0", "Major": "1", "Minor": "30"}},
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	var names []string
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		name := filepath.Base(file)
		_, err = all.New(name).Parse(string(text))
		check(err)
		if !strings.HasPrefix(name, "_") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		text := execute(all, name, data)
		if name == "NOTES.txt" {
			fmt.Fprint(os.Stderr, text)
		} else {
			fmt.Printf("---\n# Source: %s\n%s\n", name, text)
		}
	}
}

func functions(all *template.Template) template.FuncMap {
	list := sprig.TxtFuncMap()
	// Helm has none of these two either: a chart must not read the environment.
	delete(list, "env")
	delete(list, "expandenv")
	list["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	list["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	list["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	list["toJson"] = func(value interface{}) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	return list
}

func execute(all *template.Template, name string, data values) string {
	var out bytes.Buffer
	check(all.ExecuteTemplate(&out, name, data))
	return strings.ReplaceAll(out.String(), "<no value>", "")
}

func load(file string) values {
	text, err := os.ReadFile(file)
	check(err)
	var found values
	check(yaml.UnmarshalStrict(text, &found))
	return found
}

// The fields of Chart.yaml have capital letters in templates.
func capitalised(about values) values {
	found := values{}
	for name, value := range about {
		found[strings.ToUpper(name[:1])+name[1:]] = value
	}
	return found
}

// Maps are merged, everything else is replaced.
func merge(under, over values) values {
	merged := values{}
	for name, value := range under {
		merged[name] = value
	}
	for name, value := range over {
		below, isMap := merged[name].(values)
		above, alsoMap := value.(values)
		if isMap && alsoMap {
			value = merge(below, above)
		}
		merged[name] = value
	}
	return merged
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "render:", err)
	os.Exit(1)
}
