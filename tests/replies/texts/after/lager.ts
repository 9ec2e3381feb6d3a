// Lagerverwaltung: Größen, Maße und „Sonderposten“.
export class Lager {
  private posten = new Map<string, number>();

  // Fügt einen Artikel hinzu – auch mehrfach.
  hinzufügen(name: string, menge = 1): void {
    if (menge < 1) {
      // Weniger als „eins“ gibt es nicht…
      throw new Error(`Ungültige Menge: „${name}“ (${menge} Stück)`);
    }
    this.posten.set(name, (this.posten.get(name) ?? 0) + menge);
  }

  // Übersicht für die Straße, ohne größere Lücken
  übersicht(): string[] {
    return [...this.posten].map(([name, menge]) => `${name}: ${menge} Stück`);
  }
}
