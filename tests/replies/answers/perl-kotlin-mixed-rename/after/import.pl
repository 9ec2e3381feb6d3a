#!/usr/bin/env perl
use strict;
use warnings;
use JSON::PP qw(decode_json);

local $/;
my $data = decode_json(<STDIN>);
my %seen;
for my $row (@{ $data->{accounts} }) {
    my $name = $row->{userName};
    if (!defined $name && defined $row->{usr_nm}) {
        warn "usr_nm is deprecated, use userName (row $row->{id})\n";
        $name = $row->{usr_nm};
    }
    die "no userName in row $row->{id}\n" unless defined $name;
    (my $safe = lc $name) =~ s{[^\w.\-]+}{_}gx;
    next if $seen{$safe}++;
    printf "%-6d %s <%s>\n", $row->{id}, $safe, join ',', @{ $row->{tags} // [] };
}
print <<"EOT";
${\ scalar keys %seen} accounts
EOT
__END__
=head1 NAME

import.pl - reads userName (or, with a warning, the old usr_nm) and tags
