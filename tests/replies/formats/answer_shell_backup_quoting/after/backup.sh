#!/bin/sh
# backup.sh [-nv] DIR... - archives each DIR into $BACKUP_DIR
set -eu

: "${BACKUP_DIR:=$HOME/backups}"
: "${KEEP:=3}"
VERBOSE=0
DRYRUN=0

log() {
	[ "$VERBOSE" = 1 ] && printf '%s\n' "$*" >&2
	return 0
}

run() {
	if [ "$DRYRUN" = 1 ]; then
		printf 'would run: %s\n' "$*" >&2
	else
		"$@"
	fi
}

usage() {
	cat <<-EOF
	usage: $0 [-nv] DIR...
	  -n   dry run, change nothing
	  -v   say what is done
	  \$KEEP archives are kept (now $KEEP)
	EOF
	exit 2
}

while getopts nv opt; do
	case $opt in
	n) DRYRUN=1 ;;
	v) VERBOSE=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

run mkdir -p "$BACKUP_DIR"
stamp=$(date +%Y%m%d-%H%M%S)

for dir in "$@"; do
	base=$(basename "$dir")
	name=$(printf '%s' "$base" | sed 's/[^A-Za-z0-9._-]/_/g')
	archive="$BACKUP_DIR/$name-$stamp.tar.gz"
	log "$dir -> $archive"
	run tar -czf "$archive" -C "$(dirname "$dir")" "$base"

	# In a dry run the new archive doesn't exist, so it isn't in the list.
	first=$((KEEP + 1 - DRYRUN))
	ls -t "$BACKUP_DIR/$name"-*.tar.gz 2>/dev/null | tail -n +"$first" | while IFS= read -r old; do
		log "remove $old"
		run rm -f "$old"
	done
done
